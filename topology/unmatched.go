package topology

import (
	"fmt"
	"slices"
	"strings"
)

// Survey counts the endpoints that slices hold under rules, and names the
// Services of all slices as namespace/name, in order.
func Survey(list []Slice, rules Rules) (endpoints int, services []string) {
	for i := range list {
		found, _ := Project(&list[i], rules)
		endpoints += len(found)
		services = append(services, list[i].service())
	}
	slices.Sort(services)
	return endpoints, slices.Compact(services)
}

// Unmatched says in words that no endpoint counts under rules, which Services
// there are instead, and what to do.
func Unmatched(rules Rules, services []string) string {
	const most = 10
	there := "there are no slices at all: is the Service running, and is it in this source?"
	if n := len(services); n > most {
		there = fmt.Sprintf("there are slices of %s and %d more", strings.Join(services[:most], ", "), n-most)
	} else if n > 0 {
		there = "there are slices of " + strings.Join(services, ", ")
	}
	if len(services) > 0 {
		there += ": correct namespace and service, or look at the endpoints of the Service"
	}
	return fmt.Sprintf("no endpoint can be asked: wanted are those of %s; %s", rules.wanted(), there)
}

// wanted names the slices that are ours.
func (r *Rules) wanted() string {
	var words []string
	for _, filter := range [][2]string{
		{"namespace", r.Namespace}, {"Service", r.Service}, {"controller", strings.Join(r.ManagedBy, " or ")},
	} {
		if filter[1] != "" {
			words = append(words, filter[0]+" "+filter[1])
		}
	}
	if len(words) == 0 {
		return "any Service"
	}
	return strings.Join(words, ", ")
}

// service is the slice's Service as namespace/name.
func (s *Slice) service() string {
	if s.Service == "" {
		return s.Namespace + "/(no Service)"
	}
	return s.Namespace + "/" + s.Service
}

// services names the Services of all slices known.
func (w *world) services() []string {
	var names []string
	for _, r := range w.records {
		names = append(names, r.service)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
