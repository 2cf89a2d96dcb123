package wire

// What AppendKey makes of the flags, and what it puts behind the name: type,
// class and flags.
const (
	keyDO   = 1
	keyCD   = 2
	keyTail = MaxKey - MaxName
)

// AppendKeyQuery appends the query that a key stands for, with RD set: what is
// asked again later needs nothing of the client that asked first. key must come
// from AppendKey.
func AppendKeyQuery(dst, key []byte) []byte {
	start, last := len(dst), len(key)-1
	flags := flagRD
	if key[last]&keyCD != 0 {
		flags |= flagCD
	}
	dst = append(appendHeader(dst, 0, flags), key[:last]...)
	put16(dst[start:], offQDCount, 1)
	if WantsProof(key) {
		dst = appendOPT(dst, start, MinUDPSize, 0, true, NoEDE)
	}
	return dst
}

// AppendKeyFor appends the key of a question of class IN for a folded name in
// wire form, asked with or without DO and CD.
func AppendKeyFor(dst, name []byte, t Type, do, cd bool) []byte {
	var flags byte
	if do {
		flags |= keyDO
	}
	if cd {
		flags |= keyCD
	}
	dst = append(dst, name...)
	return append(dst, byte(t>>8), byte(t), 0, byte(ClassIN), flags)
}

// KeyName is the folded name of a key; borrowed.
func KeyName(key []byte) []byte { return key[:len(key)-keyTail] }

// WantsProof reports whether a key is that of a client who asks for DNSSEC
// records.
func WantsProof(key []byte) bool { return key[len(key)-1]&keyDO != 0 }

// AppendKeyOfType appends a key as it would be for another question type. Type
// 0, which nobody may ask for, makes a key of the name alone.
func AppendKeyOfType(dst, key []byte, t Type) []byte {
	dst = append(dst, key...)
	put16(dst, len(dst)-keyTail, uint16(t))
	return dst
}
