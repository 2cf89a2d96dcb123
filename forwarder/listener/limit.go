package listener

// slots is a counting semaphore: its capacity is the number of slots, its
// length the number in use.
type slots chan struct{}

func newSlots(n int) slots { return make(slots, n) }

// tryTake takes a slot if one is free.
func (s slots) tryTake() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

// take waits for a slot, or until gone is closed: then it reports false.
func (s slots) take(gone <-chan struct{}) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-gone:
		return false
	}
}

// give returns a slot.
func (s slots) give() { <-s }

func (s slots) inUse() int { return len(s) }
