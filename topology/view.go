package topology

// view is one family of the world as it was ranked.
type view struct {
	endpoints []Endpoint
	owners    []key // owners[i] is the slice of endpoints[i]
	tiers     Tiers
}

// views ranks every wanted family, the preferred one first. Each is judged on
// its own: hints are written per family.
func (w *world) views(records []*record, self Self, opts Options) []view {
	views := make([]view, len(w.rules.Families))
	for i, f := range w.rules.Families {
		v := &views[i]
		v.endpoints, v.owners = w.family(records, f)
		v.tiers = Rank(self, v.endpoints, opts)
	}
	return views
}

// leading returns the index of the family to ask: the first with a usable
// endpoint, else the first with any, else the first.
func leading(views []view) int {
	known := 0
	for i := range views {
		if views[i].tiers.Usable() {
			return i
		}
		if len(views[known].endpoints) == 0 && len(views[i].endpoints) > 0 {
			known = i
		}
	}
	return known
}

// table makes the Table of the leading family, with the other's addresses as
// alternates.
func table(views []view) Table {
	lead := leading(views)
	var others []Endpoint
	for i := range views {
		if i != lead {
			others = append(others, views[i].endpoints...)
		}
	}
	return NewTable(views[lead].tiers, others)
}

// placements explains every endpoint of every family.
func placements(views []view, self Self, opts Options) []Placement {
	lead := leading(views)
	var all []Placement
	for i := range views {
		list := Explain(self, views[i].endpoints, opts)
		for n := range list {
			list[n].Slice = views[i].owners[n].String()
			if i != lead {
				list[n].Tier = TierNone
				list[n].Reason = "alternate address: the other family comes first"
			}
		}
		all = append(all, list...)
	}
	return all
}
