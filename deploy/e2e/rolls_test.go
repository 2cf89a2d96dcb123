package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodens-dns/nodens/deploy/e2e/cluster"
)

// The workload controllers do not run here; their steps are made one by one, in
// the order in which they make them.

func TestDaemonSetRollsOneUnavailable(t *testing.T) {
	s, o := standard(t, cluster.Prefers(corev1.ServiceTrafficDistributionPreferSameNode))
	o.play([]step{
		{func() { s.Terminate("a1") }, "|a2|a3|a1~"},
		{func() { s.Ready("a1", false) }, "|a2|a3|a1!"},
		{func() { s.Remove("a1") }, "|a2|a3|"},
		{func() { s.AddPod("b1", "n1") }, "|a2|a3|b1!"},
		{func() { s.Ready("b1", true) }, "b1|a2|a3|"},

		{func() { s.Terminate("a2") }, "b1||a3|a2~"},
		{func() { s.Remove("a2") }, "b1||a3|"},
		{func() { s.AddPod("b2", "n2") }, "b1||a3|b2!"},
		{func() { s.Ready("b2", true) }, "b1|b2|a3|"},

		{func() { s.Terminate("a3") }, "b1|b2||a3~"},
		{func() { s.Remove("a3") }, "b1|b2||"},
		{func() { s.AddReadyPod("b3", "n3") }, "b1|b2|b3|"},
	})
}

func TestDaemonSetRollsWithASurge(t *testing.T) {
	s, o := standard(t, cluster.Prefers(corev1.ServiceTrafficDistributionPreferSameNode))
	o.play([]step{
		{func() { s.AddPod("b1", "n1") }, "a1|a2|a3|b1!"},
		{func() { s.Ready("b1", true) }, "a1 b1|a2|a3|"},
		{func() { s.Terminate("a1") }, "b1|a2|a3|a1~"},
		{func() { s.Ready("a1", false) }, "b1|a2|a3|a1!"},
		{func() { s.Remove("a1") }, "b1|a2|a3|"},

		{func() { s.AddReadyPod("b2", "n2") }, "b1|a2 b2|a3|"},
		{func() { s.Terminate("a2") }, "b1|b2|a3|a2~"},
		{func() { s.Remove("a2") }, "b1|b2|a3|"},
	})
	o.never("the node was without a pod", func(table string) bool { return strings.HasPrefix(table, "|") })
}

// With two replicas and the defaults, one is deleted at once and two are made:
// for a moment one pod serves the whole cluster.
func TestDeploymentRolls(t *testing.T) {
	s := stage(t)
	s.AddNode("n1", "za")
	s.AddNode("n2", "za")
	s.AddNode("n3", "zb")
	s.AddService()
	s.AddReadyPod("a2", "n2")
	s.AddReadyPod("a3", "n3")
	o := observe(t, s, "n1", "za")
	o.expect("|a2|a3|")
	o.since()
	o.play([]step{
		{func() { s.Terminate("a2"); s.AddPod("b1", "n1"); s.AddPod("b3", "n3") }, "||a3|b1! a2~ b3!"},
		{func() { s.Ready("b1", true) }, "b1||a3|a2~ b3!"},
		{func() { s.Terminate("a3") }, "b1|||a2~ a3~ b3!"},
		{func() { s.Ready("b3", true) }, "b1||b3|a2~ a3~"},
		{func() { s.Remove("a2"); s.Remove("a3") }, "b1||b3|"},
	})
	o.never("nobody was left to ask", func(table string) bool { return strings.HasPrefix(table, "|||") })
}

// The last pods drain: they are used until a new one is ready.
func TestEveryPodTerminates(t *testing.T) {
	s, o := standard(t)
	s.Terminate("a1")
	s.Terminate("a2")
	s.Terminate("a3")
	o.measured("a1~|a2~|a3~|")
	o.play([]step{
		{func() { s.Remove("a1") }, "|a2~|a3~|"},
		{func() { s.AddReadyPod("b3", "n3") }, "||b3|a2~ a3~"},
		{func() { s.AddReadyPod("b1", "n1") }, "b1||b3|a2~ a3~"},
	})
}

// The pod is gone at once, or after a moment in which it was terminating.
func TestPodIsForceDeleted(t *testing.T) {
	s, o := standard(t)
	s.Remove("a1")
	o.measured("|a2|a3|")
	o.never("a1 was used on", func(table string) bool { return strings.HasPrefix(table, "a1") })
}

// A graceful shutdown of a node ends its pods without deleting them.
func TestPodEndsWithItsNode(t *testing.T) {
	s, o := standard(t)
	s.Fail("a1")
	o.measured("|a2|a3|")
	s.Fail("a2")
	o.measured("||a3|")
}

func TestNodeIsLost(t *testing.T) {
	s, o := standard(t)
	s.LoseNode("n2")
	o.measured("a1||a3|a2!")
	s.Terminate("a2") // evicted
	s.AddReadyPod("b1", "n1")
	o.measured("a1 b1||a3|a2!")
	s.Remove("a2") // the node came back and confirmed
	o.measured("a1 b1||a3|")
}

// The control plane loses sight of every node while all of them work.
func TestEveryNodeIsLost(t *testing.T) {
	s, o := standard(t)
	s.LoseNode("n1")
	s.LoseNode("n2")
	s.LoseNode("n3")
	o.measured("|||a1! a2! a3!")
	s.Ready("a3", true)
	o.measured("||a3|a1! a2!")
}

func TestNodeIsDeleted(t *testing.T) {
	s, o := standard(t)
	s.RemoveNode("n2")
	s.Resync() // a deleted Node alone makes the controller look at nothing
	o.measured("a1||a3|")
	s.AddNode("n2", "za")
	s.Resync()
	o.measured("a1|a2|a3|")
}
