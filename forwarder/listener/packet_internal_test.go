package listener

import "testing"

func TestPacketIsReleasedOnce(t *testing.T) {
	o := newPool(2)
	p := o.take()
	o.release(p)
	defer func() {
		if recover() == nil {
			t.Error("the second release went unnoticed")
		}
	}()
	o.release(p)
}

func TestPoolKeepsWhatItMay(t *testing.T) {
	o := newPool(2)
	a, b, c := o.take(), o.take(), o.take()
	o.release(a)
	o.release(b)
	o.release(c)
	if len(o.free) != 2 {
		t.Errorf("%d packets kept, want 2", len(o.free))
	}
	if o.take() != b || o.take() != a {
		t.Error("the packets kept are not those released first")
	}
}
