package wire

// Sizes of the format, in bytes.
const (
	HeaderLen  = 12    // RFC 1035 section 4.1.1
	MaxLabel   = 63    // RFC 1035 section 2.3.4
	MaxName    = 255   // RFC 1035 section 2.3.4, the root's zero byte included
	MaxMessage = 65535 // RFC 1035 section 4.2.2
	MinUDPSize = 512   // what a client without EDNS can take, RFC 1035 section 4.2.1
	OPTLen     = 11    // an OPT record without options, RFC 6891 section 6.1.2
	EDELen     = 6     // an Extended DNS Error option without text, RFC 8914 section 2
)

// Type is a record or question type. Any value may occur (RFC 3597).
type Type uint16

// Types that the forwarder treats by name.
const (
	TypeA     Type = 1
	TypeNS    Type = 2
	TypeCNAME Type = 5
	TypeSOA   Type = 6
	TypePTR   Type = 12
	TypeMX    Type = 15
	TypeTXT   Type = 16
	TypeSIG   Type = 24
	TypeAAAA  Type = 28
	TypeSRV   Type = 33
	TypeDNAME Type = 39
	TypeOPT   Type = 41
	TypeDS    Type = 43
	TypeRRSIG Type = 46
	TypeTKEY  Type = 249
	TypeTSIG  Type = 250
	TypeIXFR  Type = 251
	TypeAXFR  Type = 252
	TypeMAILB Type = 253
	TypeMAILA Type = 254
	TypeANY   Type = 255
)

// Class is a record or question class.
type Class uint16

// Classes that the forwarder treats by name.
const (
	ClassIN Class = 1
	ClassCH Class = 3
)

// RCode is a response code: 4 bits in the header, 12 with EDNS (RFC 6891
// section 6.1.3).
type RCode uint16

// Response codes that the forwarder treats by name.
const (
	NoError  RCode = 0
	FormErr  RCode = 1
	ServFail RCode = 2
	NXDomain RCode = 3
	NotImp   RCode = 4
	Refused  RCode = 5
	YXDomain RCode = 6
	BadVers  RCode = 16
)

// EDE is an Extended DNS Error code plus one, so that the zero value says
// nothing (RFC 8914 section 4).
type EDE uint16

// Extended errors that the forwarder gives.
const (
	NoEDE            EDE = 0
	EDEStale         EDE = 1 + 3
	EDECachedError   EDE = 1 + 13
	EDEProhibited    EDE = 1 + 18
	EDEStaleNXDomain EDE = 1 + 19
	EDENoRoute       EDE = 1 + 20 // "Not Authoritative"
	EDENotSupported  EDE = 1 + 21
	EDENoReachable   EDE = 1 + 22
	EDENetworkError  EDE = 1 + 23
)
