package container

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nodens-dns/nodens/bench/space"
)

// entry is the entry point of the image.
const entry = "/nodens"

// Image is the image: the binary with its capability, and nothing else but the folders
// that the image below it has.
type Image struct {
	dir string // bundles are beside it
}

// NewImage makes the image of a binary. dir takes it, and what is made of its
// containers.
func NewImage(t testing.TB, dir, binary string) Image {
	t.Helper()
	for _, program := range []string{"runc", "setcap"} {
		_, err := exec.LookPath(program)
		space.Needs(t, program, err == nil)
	}
	i := Image{dir}
	text, err := os.ReadFile(binary)
	if err == nil {
		err = os.WriteFile(i.binary(), text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("setcap", "cap_net_bind_service+p", i.binary()).CombinedOutput(); err != nil {
		t.Fatalf("setcap: %v: %s", err, out)
	}
	return i
}

func (i Image) binary() string { return filepath.Join(i.dir, "image") }

// unpack makes a root of the image. The binary is a link, which has the capability too.
func (i Image) unpack(root string) error {
	for _, folder := range []string{"etc", "root", "run", "tmp", "var"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(filepath.Join(root, "tmp"), 0o777|os.ModeSticky); err != nil {
		return err
	}
	return os.Link(i.binary(), filepath.Join(root, entry))
}
