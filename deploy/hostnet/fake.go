package hostnet

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fake is a Host in memory, for tests of what drives one. The zero value is a host
// without anything of ours, on a kernel that makes dummy links. Its methods may be
// called at once. Exported fields are set before use.
type Fake struct {
	// Now tells the time, since any moment, for the sets. Default: it stands still.
	Now func() time.Duration
	// Err, if it is not nil, is asked before every change and read, by the name of the
	// method.
	Err func(method string) error

	mu        sync.Mutex
	table     *table
	link      Link
	held      map[heldKey]time.Duration
	counts    Counts
	leftovers []string
	watchers  []chan struct{}
}

type heldKey struct {
	set  Set
	addr netip.Addr
}

func (f *Fake) fails(method string) error {
	if f.Err == nil {
		return nil
	}
	return f.Err(method)
}

func (f *Fake) now() time.Duration {
	if f.Now == nil {
		return 0
	}
	return f.Now()
}

// Apply is as Host.Apply.
func (f *Fake) Apply(s State) (Report, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fails("Apply"); err != nil {
		return Report{}, err
	}
	if err := s.Validate(); err != nil {
		return Report{}, fmt.Errorf("the desired state is invalid: %w", err)
	}
	s = s.filled()
	found := f.found(s.Link)
	report := Report{Link: s.Link, Changed: found.Missing(s), Notes: found.oddities(s)}
	f.table, f.link = build(s), Link{}
	if s.Mode == None {
		f.held = nil
		return report, nil
	}
	f.link = Link{Name: s.Link, Kind: "dummy", Up: true, Ours: true, Addrs: s.listen()}
	report.Kind = f.link.Kind
	return report, nil
}

// Read is as Host.Read.
func (f *Fake) Read(s State) (Found, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.found(s.filled().Link)
	found.Leftovers = slices.Clone(f.leftovers)
	return found, f.fails("Read")
}

func (f *Fake) found(link string) Found {
	found := Found{Link: Link{Name: link}, Table: f.table != nil, Counts: f.counts, lines: f.table.lines()}
	if f.link.Name == link {
		found.Link = f.link
	}
	for key, until := range f.held {
		if left := until - f.now(); left > 0 {
			found.Held = append(found.Held, Hold{Set: key.set, Addr: key.addr, Left: left})
		}
	}
	slices.SortFunc(found.Held, func(a, b Hold) int {
		return int(a.Set) - int(b.Set) + a.Addr.Compare(b.Addr)
	})
	return found
}

// Hold is as Host.Hold.
func (f *Fake) Hold(s Set, ttl time.Duration, addrs ...netip.Addr) error {
	return f.change("Hold", func() {
		for _, a := range addrs {
			f.held[heldKey{set: s, addr: a.Unmap()}] = f.now() + ttl
		}
	})
}

// Release is as Host.Release.
func (f *Fake) Release(s Set, addrs ...netip.Addr) error {
	return f.change("Release", func() {
		for _, a := range addrs {
			delete(f.held, heldKey{set: s, addr: a.Unmap()})
		}
	})
}

func (f *Fake) change(method string, do func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fails(method); err != nil {
		return err
	}
	if f.table == nil {
		return ErrNoTable
	}
	if f.held == nil {
		f.held = map[heldKey]time.Duration{}
	}
	do()
	return nil
}

// RemoveLeftovers is as Host.RemoveLeftovers.
func (f *Fake) RemoveLeftovers(State) (Report, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fails("RemoveLeftovers"); err != nil {
		return Report{}, err
	}
	report := Report{Changed: prefixed("node-cache: removed: ", f.leftovers)}
	f.leftovers = nil
	return report, nil
}

// Cleanup is as Host.Cleanup.
func (f *Fake) Cleanup(s State, lives func(netip.Addr) bool) (Report, error) {
	s.Mode = None
	note := spared(s.listen(), lives)
	ours, err := f.Apply(s)
	if err != nil {
		return ours, err
	}
	if note != "" {
		ours.Notes = append(ours.Notes, note)
		return ours, nil
	}
	left, err := f.RemoveLeftovers(s)
	ours.Changed = append(ours.Changed, left.Changed...)
	return ours, err
}

// Close is as Host.Close.
func (f *Fake) Close() {}

// String is what is on the host: the link, and the table in the words of nft.
func (f *Fake) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	if f.link.Kind != "" {
		fmt.Fprintf(&b, "# link %s, %s, up\n", f.link.Name, f.link.Kind)
		for _, a := range f.link.Addrs {
			fmt.Fprintf(&b, "# address %v/%d\n", a, a.BitLen())
		}
		b.WriteByte('\n')
	}
	b.WriteString(f.table.String())
	return b.String()
}
