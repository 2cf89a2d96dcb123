package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// noticeGap is the least time between two notices of one server's certificates:
// behind one address may be several servers, each with another.
const noticeGap = time.Minute

// notices is what was said of a server that no reply shows.
type notices struct {
	letters     atomic.Bool // that it does not repeat them
	certificate certificate
}

// certificate is what is known of the one that a server showed last.
type certificate struct {
	mu    sync.Mutex
	leaf  *x509.Certificate // the one that was refused
	why   string            // "": it fits, or was not seen
	told  bool
	bound limit
}

// refused notes why a certificate does not fit, and reports whether that is
// news.
func (c *certificate) refused(now time.Duration, by *tls.CertificateVerificationError) (news bool) {
	var leaf *x509.Certificate
	if len(by.UnverifiedCertificates) > 0 {
		leaf = by.UnverifiedCertificates[0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Reasons may name the time, so that it is the certificate that tells.
	c.told = c.told && c.why != "" && c.leaf.Equal(leaf)
	c.leaf, c.why = leaf, by.Err.Error()
	news = !c.told && c.bound.take(now, noticeGap, 1)
	c.told = c.told || news
	return news
}

func (c *certificate) fits() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaf, c.why = nil, ""
}

// misfit is why the certificate does not fit; "" if it does.
func (c *certificate) misfit() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

// noteRefused notes that the certificate of the server does not fit, and returns
// what that means for the connection.
func (p *tcpPool) noteRefused(by *tls.CertificateVerificationError) error {
	err := fmt.Errorf("%w: %w", ErrCertificate, by.Err)
	if p.score.notices.certificate.refused(p.group.cfg.Now(), by) {
		p.group.cfg.Notice(p.addr, err)
	}
	return err
}

// noteLetters says once of a server that it does not repeat letters.
func (g *Group) noteLetters(s *score, server netip.AddrPort) {
	if s.notices.letters.CompareAndSwap(false, true) {
		g.cfg.Notice(server, ErrLetters)
	}
}
