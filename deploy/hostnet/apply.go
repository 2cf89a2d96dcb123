package hostnet

import (
	"errors"
	"fmt"
)

// Report is what an Apply or a Cleanup did.
type Report struct {
	// Link is the name of the link and Kind its kind, "" in mode none.
	Link, Kind string
	// Changed lists what was not as desired, a sentence each. Empty: nothing was done.
	Changed []string
	// Forgotten is how many TCP handshakes with former targets were deleted.
	Forgotten int
	// Notes lists what is odd but did not stop anything, a sentence each.
	Notes []string
}

// Apply makes the host look like s: nothing where it does already, else the table in
// one transaction (as little of it as may be), then link and addresses, then the deletion of TCP handshakes
// with targets that s does not know. Counters and the sets Alive and Bypass survive.
// Mode none removes table and link.
//
// An error leaves the table as it was before or as desired, never in between. It says
// when s is invalid, when the kernel or a capability is missing, also for the link
// (ErrLink), and when a link of that name or an address belongs to somebody else
// (ErrForeign). Link and addresses are made also where the table cannot be: who listens
// there is found without it. The table is made also where the link cannot be: pods then
// have the fallback.
func (h *Host) Apply(s State) (Report, error) {
	if err := s.Validate(); err != nil {
		return Report{}, fmt.Errorf("the desired state is invalid: %w", err)
	}
	s = s.filled()
	h.mu.Lock()
	defer h.mu.Unlock()

	found, err := h.read(s.Link)
	if err != nil {
		return Report{}, err
	}
	report := Report{Link: s.Link, Changed: found.Missing(s), Notes: found.oddities(s)}
	if err := found.refuse(s); err != nil {
		return report, err
	}
	if !sameLines(found.lines, build(s).lines()) || len(found.Other) > 0 {
		err = h.settleTable(build(s), found)
	}
	kind, linkErr := h.settleLink(s, found.Link)
	if linkErr != nil {
		linkErr = linkError{linkErr}
	}
	if report.Kind = kind; err != nil || linkErr != nil {
		return report, errors.Join(err, linkErr)
	}
	if len(report.Changed) == 0 && h.settled {
		return report, nil
	}
	if report.Forgotten, err = h.forget(s); err != nil {
		report.Notes = append(report.Notes, err.Error())
	}
	h.settled = true
	return report, nil
}
