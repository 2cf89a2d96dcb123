package wire

import "testing"

func TestBitmap(t *testing.T) {
	end := 64 * len(bitmap{})
	for _, at := range []int{0, 1, 63, 64, 100, 127, 128, end - 65, end - 1} {
		for size := range 200 {
			var b bitmap
			b.add(at, at+size)
			for i := max(0, at-70); i < min(end, at+size+70); i++ {
				if want := at <= i && i < at+size; b.has(i, i+1) != want {
					t.Fatalf("%d bits from %d: bit %d is %t", size, at, i, !want)
				}
			}
			var one bitmap // any stretch over a single bit has it
			one.add(at, at+1)
			if before := max(0, at-size); !one.has(before, at+1+size) || one.has(before, at) || one.has(at+1, at+1+size) {
				t.Fatalf("a stretch of %d around bit %d", size, at)
			}
		}
	}
	if new(bitmap).has(end, end+100) {
		t.Error("a bit behind the end")
	}
}
