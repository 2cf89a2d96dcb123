package wire

// optionEDE is the EDNS option of an extended error (RFC 8914 section 2).
const optionEDE = 15

// EDE is the first extended error of a server's reply, NoEDE without one. Its
// text is left behind: nobody has checked what it says.
func (r *Reply) EDE() EDE {
	if r.opt == 0 {
		return NoEDE
	}
	rr := recordAt(r.Msg, r.opt, r.opt+1)
	for off := rr.Data; off+4 <= rr.End; {
		data, size := off+4, int(get16(r.Msg, off+2))
		if data+size > rr.End {
			return NoEDE
		}
		if get16(r.Msg, off) == optionEDE && size >= 2 {
			return EDE(get16(r.Msg, data)) + 1
		}
		off = data + size
	}
	return NoEDE
}
