package wire

// ClearClaims takes AA and AD away, for data that may have changed since.
func ClearClaims(msg []byte) { put16(msg, offFlags, get16(msg, offFlags)&^(flagAA|flagAD)) }

// SetAA calls the reply in msg authoritative.
func SetAA(msg []byte) { put16(msg, offFlags, get16(msg, offFlags)|flagAA) }

// Authoritative reports the AA bit.
func (r *Reply) Authoritative() bool { return get16(r.Msg, offFlags)&flagAA != 0 }

// Minimal is the reply without its authority and additional sections. Names
// only point backwards, so nothing that stays can miss what is cut.
func (r Reply) Minimal() Reply {
	end := r.qEnd
	var rr Record
	for c := r.Records(); c.Next(&rr) && rr.Section == Answer; {
		end = rr.End
	}
	r.end, r.opt = end, 0
	r.counts[Authority], r.counts[Additional] = 0, 0
	return r
}

// AnswerCount is the number of answer records. msg must hold a whole header.
func AnswerCount(msg []byte) int { return int(get16(msg, offANCount)) }
