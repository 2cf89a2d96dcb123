package hostnet

import (
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Try asks the kernel whether it takes the table of s, and changes nothing: the table
// is made and removed in one transaction. Where a table of this layout is there
// already, the kernel has taken it.
func (h *Host) Try(s State) error {
	if err := s.Validate(); err != nil {
		return fmt.Errorf("the desired state is invalid: %w", err)
	}
	t := build(s.filled())
	if t == nil {
		return nil
	}
	var b batch
	name := func(a attrs) { a.String(unix.NFTA_TABLE_NAME, t.name) }
	b.add(unix.NFT_MSG_NEWTABLE, netlink.Create|netlink.Excl, name)
	b.table(t, Found{})
	b.add(unix.NFT_MSG_DELTABLE, 0, name)
	err := h.commit(&b)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return notTaken("the kernel does not take the nft table", err)
}

// tryName is the name of a link that is gone at once.
const tryName = "nodens-try"

// TryLink makes a link as Apply would, removes it, and returns its kind.
func (h *Host) TryLink() (kind string, err error) {
	if err := h.makeLink(tryName); err != nil {
		return "", err
	}
	link, err := h.nl.LinkByName(tryName)
	if err == nil {
		kind = link.Type()
	}
	return kind, errors.Join(err, h.removeLink(tryName))
}
