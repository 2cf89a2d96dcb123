package kubelet

import (
	"encoding/json"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodens-dns/nodens/bench/container"
	"github.com/nodens-dns/nodens/bench/space"
)

// pod is a pod of the node.
type pod struct {
	k       *Kubelet
	object  *corev1.Pod
	volumes map[string]*volume
	started map[string]*contained
	told    told
	since   time.Time // when that was
}

// told is the status of a pod that was told last.
type told struct {
	phase corev1.PodPhase
	ready bool
}

// contained is a container of a pod.
type contained struct {
	spec    corev1.Container
	process *container.Container // nil for an image that is not ours
	done    bool                 // of an init container or a Job: it has succeeded
	next    time.Time            // when the readiness probe is due
	ready   bool
	leaving bool // it was sent TERM
}

// sidecar tells whether an init container goes on.
func sidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// run starts what should run and does not, and tells how it stands.
func (p *pod) run() {
	p.k.t.Helper()
	if p.object.Status.Phase == corev1.PodSucceeded || !p.prepare() {
		return
	}
	for _, spec := range p.object.Spec.InitContainers {
		c := p.keep(spec)
		if !sidecar(spec) && !c.done {
			p.tell(corev1.PodPending, false)
			return
		}
	}
	ready, done := true, true
	for _, spec := range p.object.Spec.Containers {
		c := p.keep(spec)
		ready = p.isReady(c) && ready
		done = done && c.done
	}
	if done {
		p.tell(corev1.PodSucceeded, false)
		return
	}
	p.tell(corev1.PodRunning, ready)
}

// keep starts a container that does not run, unless it has succeeded and need not.
func (p *pod) keep(spec corev1.Container) *contained {
	p.k.t.Helper()
	c := p.started[spec.Name]
	if c == nil {
		c = &contained{spec: spec}
		p.started[spec.Name] = c
	}
	switch {
	case c.done:
	case !strings.Contains(spec.Image, "nodens"):
		c.done = p.k.cfg.Elsewhere(p.k.t.Context(), spec)
	case c.process == nil:
		p.start(c)
	case !c.process.Running():
		if said, cannot := c.process.CannotRun(); cannot {
			p.k.t.Log(said)
			space.Needs(p.k.t, "runc", false)
		}
		if c.process.Code() == 0 && p.ends(spec) {
			c.done = true
			break
		}
		p.k.t.Logf("%s ended with %d and is started anew", c.process.ID, c.process.Code())
		p.start(c)
	}
	return c
}

// ends tells whether a container is meant to end.
func (p *pod) ends(spec corev1.Container) bool {
	for _, init := range p.object.Spec.InitContainers {
		if init.Name == spec.Name {
			return !sidecar(init)
		}
	}
	return p.object.Spec.RestartPolicy != corev1.RestartPolicyAlways
}

func (p *pod) start(c *contained) {
	p.k.t.Helper()
	c.ready, c.next = false, time.Now().Add(roundTime/2) // not before this round has told that it is not ready
	c.process = p.k.cfg.Image.Start(p.k.t, p.config(c.spec))
}

// terminate is one round of the end of a pod, and tells whether it is over: sidecars
// are asked to leave when the others have left.
func (p *pod) terminate() bool {
	if p.since.IsZero() {
		p.since = time.Now()
	}
	grace := time.Duration(*p.object.DeletionGracePeriodSeconds) * time.Second
	if time.Since(p.since) > grace {
		p.kill()
		return true
	}
	over := true
	for _, spec := range p.object.Spec.Containers {
		over = p.leave(spec.Name) && over
	}
	if !over {
		return false
	}
	for _, spec := range p.object.Spec.InitContainers {
		over = p.leave(spec.Name) && over
	}
	return over
}

// leave asks a container to leave, once, and tells whether it has.
func (p *pod) leave(name string) bool {
	c := p.started[name]
	if c == nil || c.process == nil || !c.process.Running() {
		return true
	}
	if !c.leaving {
		c.leaving = true
		c.process.Signal(syscall.SIGTERM)
	}
	return false
}

// kill ends all containers at once.
func (p *pod) kill() {
	for _, c := range p.started {
		if c.process == nil || !c.process.Running() {
			continue
		}
		if pid := c.process.FirstPID(); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-c.process.Done()
	}
}

// tell says at the API server how the pod stands, if that has changed.
func (p *pod) tell(phase corev1.PodPhase, ready bool) {
	p.k.t.Helper()
	condition := func(kind corev1.PodConditionType, yes bool) corev1.PodCondition {
		status := corev1.ConditionFalse
		if yes {
			status = corev1.ConditionTrue
		}
		return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.Now()}
	}
	now := told{phase, ready}
	if now == p.told {
		return
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"phase": phase, "hostIP": p.k.cfg.Address, "podIP": p.k.cfg.Address,
		"podIPs":     []corev1.PodIP{{IP: p.k.cfg.Address}},
		"conditions": []corev1.PodCondition{condition(corev1.PodReady, ready), condition(corev1.ContainersReady, ready)},
	}})
	p.k.must("encode status", err)
	_, err = p.k.cfg.Client.CoreV1().Pods(p.object.Namespace).Patch(p.k.t.Context(), p.object.Name,
		types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if !apierrors.IsNotFound(err) {
		p.k.must("patch status of pod", err)
	}
	p.told = now
}
