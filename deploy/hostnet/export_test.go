package hostnet

// Older makes the kernel of a host one that does not know all that we say: rewrite changes
// what it does not know to what no kernel knows.
func (h *Host) Older(rewrite func(message []byte) []byte) { h.older = rewrite }
