package state

import (
	"errors"
	"sync"
)

type counter struct{ n int }

func (c *counter) add()    { c.n++ }
func (c counter) get() int { return c.n }

var (
	errFull = errors.New("full")
	names   = [...]string{"A", "AAAA"}
	table   = map[string]int{"A": 1}
	total   counter
	shared  = &counter{}
	mu      sync.Mutex
	limit   = 3
	wake    = make(chan struct{}) // want `package variable wake is a channel`
)

func reads(key string) (int, error) {
	local := table
	local2 := names
	local2[0] = "own copy"
	if local[key] == limit+total.get() {
		return 0, errFull
	}
	return len(local2), nil
}

func changes() {
	limit = 4          // want `package variable limit is changed here`
	limit++            // want `package variable limit is changed here`
	names[0] = "B"     // want `package variable names is changed here`
	table["B"] = 2     // want `package variable table is changed here`
	delete(table, "A") // want `package variable table is changed here`
	total.n = 1        // want `package variable total is changed here`
	total.add()        // want `package variable total is changed here`
	p := &total        // want `package variable total is changed here`
	p.add()
	mu.Lock() // want `package variable mu is changed here`
	shared.add()
	for limit = range 3 { // want `package variable limit is changed here`
	}
}
