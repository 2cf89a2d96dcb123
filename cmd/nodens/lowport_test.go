package main

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/space"
)

// The image's binary binds port 53 as another user than root, with the one
// capability that the manifest adds, also where nothing may be gained by starting
// a program (allowPrivilegeEscalation: false).
func TestLowPortWithoutRoot(t *testing.T) {
	space.Needs(t, "root", os.Getuid() == 0 && installed("setcap", "setpriv"))
	folder, err := os.MkdirTemp("/tmp", "nodens-low-") // where the other user can read
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	binary, config := filepath.Join(folder, "nodens"), filepath.Join(folder, "nodens.yaml")
	copyProgram(t, binary)
	if out, err := exec.Command("setcap", "cap_net_bind_service+p", binary).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := "version: v1\nlisten: [127.53.7.1:53]\nadmin: {address: \"127.53.7.1:9253\"}\nroutes: [{zones: [\".\"], servers: [192.0.2.1]}]\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	only := []string{"--reuid=65532", "--regid=65532", "--clear-groups", "--bounding-set=-all,+net_bind_service"}
	for name, tc := range map[string]struct {
		flags []string
		works bool
	}{
		"the capability of the binary": {only, true},
		// A runtime permits what the manifest adds; setpriv can only say so by the
		// ambient set, which a program with a capability of its own does not get.
		"nothing may be gained":  {append(only, "--inh-caps=-all,+net_bind_service", "--ambient-caps=-all,+net_bind_service", "--no-new-privs"), true},
		"the manifest adds none": {[]string{"--reuid=65532", "--regid=65532", "--clear-groups", "--bounding-set=-all"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := servesAt(t, "127.53.7.1:53", append(tc.flags, binary, "serve", "-config", config)); (err == nil) != tc.works {
				t.Errorf("got %v, works is to be %t", err, tc.works)
			}
		})
	}
}

// servesAt starts this program under setpriv and asks it something.
func servesAt(t *testing.T, address string, args []string) error {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	c := exec.CommandContext(ctx, "setpriv", args...)
	c.Env = append(os.Environ(), "NODENS_TEST_MAIN=1")
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	query := new(dns.Msg).SetQuestion("localhost.", dns.TypeA)
	client := dns.Client{Timeout: 200 * time.Millisecond}
	for {
		select {
		case err := <-ended:
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return err
		default:
		}
		if _, _, err := client.Exchange(query, address); err == nil {
			connection, err := net.DialTimeout("tcp", address, time.Second)
			if err == nil {
				err = connection.Close()
			}
			stop()
			<-ended
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
}
