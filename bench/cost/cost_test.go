package cost_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/cost"
)

// usage is the kernel's own answer to the same question about this process.
func usage(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestCPUTimeOfThisProcess(t *testing.T) {
	before := usage(t)
	from, err := cost.Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < 100*time.Millisecond; {
		_ = os.Getppid() // some system time too
	}
	to, err := cost.Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	after := usage(t)
	got := cost.Between(from, to)
	if got.CPU() <= 0 || got.CPU() > after-before+20*time.Millisecond {
		t.Errorf("cost is %v, the kernel says at most %v", got.CPU(), after-before)
	}
	if got.Per(1000) != got.CPU()/1000 || got.Per(0) != 0 {
		t.Errorf("per query of 1000: %v of %v", got.Per(1000), got.CPU())
	}
	if got.Cores() <= 0 || got.Cores() > float64(to.Threads) {
		t.Errorf("%v cores were busy", got.Cores())
	}
}

func TestChildren(t *testing.T) {
	before := cost.Children(os.Getpid())
	child := exec.Command("/bin/sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	during := cost.Children(os.Getpid())
	_ = child.Process.Kill()
	_ = child.Wait() // killed
	if after := cost.Children(os.Getpid()); during != before+1 || after != before {
		t.Errorf("%d children before, %d during and %d after one ran", before, during, after)
	}
}

func TestMemoryAndSwitches(t *testing.T) {
	from, err := cost.Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const size = 64 << 20
	block := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		block[i] = 1
	}
	for range 20 {
		time.Sleep(time.Millisecond)
	}
	to, err := cost.Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if grown := int64(to.RSS) - int64(from.RSS); grown < size/2 || to.PeakRSS < to.RSS {
		t.Errorf("RSS grew by %d octets, want about %d; peak %d of %d", grown, size, to.PeakRSS, to.RSS)
	}
	if to.Voluntary < from.Voluntary+10 {
		t.Errorf("%d voluntary switches in 20 sleeps", to.Voluntary-from.Voluntary)
	}
	if block[0] == 0 {
		t.Error("unreachable: keeps the block alive")
	}
}

func TestNoSuchProcess(t *testing.T) {
	if _, err := cost.Read(1 << 29); err == nil {
		t.Error("a process that does not exist has a cost")
	}
}

func TestWatch(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	samples, err := cost.Watch(ctx, os.Getpid(), 20*time.Millisecond)
	if err != nil || len(samples) < 3 || len(samples) > 13 {
		t.Fatalf("%d samples in 200 ms, %v; want about 11", len(samples), err)
	}
	for i := 1; i < len(samples); i++ {
		if samples[i].CPU() < samples[i-1].CPU() || samples[i].At.Before(samples[i-1].At) {
			t.Errorf("sample %d goes back", i)
		}
	}
}
