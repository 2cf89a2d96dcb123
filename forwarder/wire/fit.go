package wire

// Fit cuts the bare reply in msg to limit bytes on record boundaries and
// returns it. Additional records go first, then authority, then answers from
// the end, so that as many whole records stay as fit: stub resolvers without
// TCP use what is there. TC is set only when a record that the answer needs
// was cut (RFC 2181 section 9): an answer, or the authority section when it is
// all the answer there is or carries a proof the client asked for with DO.
// limit must hold the header and question.
func Fit(msg []byte, limit int, do bool) []byte {
	if len(msg) <= limit {
		return msg
	}
	end, kept := fitting(msg, limit)
	answers := get16(msg, offANCount)
	cut := kept[Answer] < answers ||
		kept[Authority] < get16(msg, offNSCount) && (answers == 0 || do)
	for s := Answer; s <= Additional; s++ {
		put16(msg, offANCount+2*int(s), kept[s])
	}
	if cut {
		put16(msg, offFlags, get16(msg, offFlags)|flagTC)
	}
	return msg[:end]
}

// fitting counts the whole records of each section within limit. A section
// that does not fit whole is left out, but for the answers.
func fitting(msg []byte, limit int) (end int, kept [3]uint16) {
	off := nameEnd(msg, HeaderLen) + 4
	end = off
	for s := Answer; s <= Additional; s++ {
		count := get16(msg, offANCount+2*int(s))
		for n := range count {
			off = recordAt(msg, off, nameEnd(msg, off)).End
			if off > limit {
				return end, kept
			}
			if s == Answer {
				end, kept[s] = off, n+1
			}
		}
		end, kept[s] = off, count
	}
	return end, kept
}
