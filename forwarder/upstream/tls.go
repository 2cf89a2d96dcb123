package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// tlsDepth is how many queries may be in flight on one connection over TLS:
// servers that speak it answer in any order (RFC 7858 section 3.3).
const tlsDepth = 64

// tlsConfig is how the server of one address is spoken to. What is kept of its
// sessions makes the next connection cheaper.
func tlsConfig(cfg *Config, name string) *tls.Config {
	return &tls.Config{
		ServerName: name, RootCAs: cfg.Roots, NextProtos: []string{"dot"},
		MinVersion:         tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(cfg.TCPConns),
	}
}

// connect opens a connection, and speaks TLS on it if it must.
func (p *tcpPool) connect() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(p.group.ctx, p.group.cfg.TCPDial)
	defer cancel()
	conn, err := p.group.cfg.Dial(ctx, "tcp", p.addr.String())
	if err != nil || p.tls == nil {
		return conn, err
	}
	over := tls.Client(conn, p.tls)
	if err := over.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		if by := (*tls.CertificateVerificationError)(nil); errors.As(err, &by) {
			return nil, p.noteRefused(by)
		}
		return nil, fmt.Errorf("%w: %w", ErrTLS, err)
	}
	p.score.notices.certificate.fits()
	return over, nil
}
