package kube

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// contact keeps what is known about the connection. It complains when the kind of
// fault changes, never for each attempt.
type contact struct {
	now      func() time.Duration
	log      *zap.Logger
	complain func(Fault, error) // called with the lock held

	mu     sync.Mutex
	status Status // without Age and FailingFor
	last   time.Duration
	since  time.Duration // valid while status.Fault is not None, like the next
	well   bool          // a sign of life came after the last failure,
	wellAt time.Duration // then
}

// settle is how long all must be well before a fault counts as over: a server
// whose lists work and whose watches fail is no good one in between.
const settle = 2 * time.Second

func newContact(now func() time.Duration, log *zap.Logger, complain func(Fault, error)) *contact {
	return &contact{now: now, log: log, complain: complain, last: now()}
}

func (c *contact) snapshot() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	c.recover(now)
	s := c.status
	s.Age = now - c.last
	if s.Fault != None {
		s.FailingFor = now - c.since
	}
	return s
}

// count changes counters.
func (c *contact) count(change func(*Counters)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.status.Counters)
}

// follows says which Service the next requests are for.
func (c *contact) follows(namespace, service string, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Namespace, c.status.Service, c.status.Found = namespace, service, found
}

// heard is a sign of life.
func (c *contact) heard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Contacted = true
	c.last = c.now()
	if !c.well {
		c.well, c.wellAt = true, c.last
	}
	c.recover(c.last)
}

// recover ends a fault that is over. The lock is held.
func (c *contact) recover(now time.Duration) {
	if c.status.Fault == None || !c.well || now-c.wellAt < settle {
		return
	}
	c.log.Info("the API server answers again", zap.Stringer("fault", c.status.Fault), zap.Duration("after", c.wellAt-c.since))
	c.status.Fault, c.status.LastError = None, ""
}

// failed is the outcome of an attempt, as a person should read it.
func (c *contact) failed(fault Fault, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Counters.Failures++
	now := c.now()
	c.recover(now)
	c.well = false
	if c.status.Fault == None {
		c.since = now
	}
	if c.status.Fault != fault {
		c.complain(fault, err)
	}
	c.status.Fault, c.status.LastError = fault, err.Error()
}

// brokenWatch is how the client library marks a watch whose connection broke;
// it looks like an error of the server otherwise.
const brokenWatch = "ClientWatchDecoding"

// faultOf sorts errors by what has to be done about them.
func faultOf(err error) Fault {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, errNotInCluster), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return NoServer
	case apierrors.IsUnauthorized(err):
		return Unauthorized
	case apierrors.IsForbidden(err):
		return Forbidden
	case errors.As(err, &verification), errors.As(err, &authority), errors.As(err, &hostname):
		return Certificate
	case apierrors.HasStatusCause(err, brokenWatch):
		return Unreachable
	case errors.As(err, &status):
		return ServerError
	default:
		return Unreachable
	}
}
