package load

// Counts accounts for queries: when none is in flight, Sent is the sum of
// Right, Late, Wrong, Truncated, ServFail and Lost.
type Counts struct {
	Sent      uint64 `json:"sent"`
	Right     uint64 `json:"right"`
	Late      uint64 `json:"late"` // right, but later than Config.Late
	Wrong     uint64 `json:"wrong"`
	Truncated uint64 `json:"truncated"`
	ServFail  uint64 `json:"servfail"`
	Lost      uint64 `json:"lost"`
	Resent    uint64 `json:"resent"`   // datagrams sent again; the query counts once
	Followed  uint64 `json:"followed"` // truncated replies asked again over TCP
	WrongBy   Wrongs `json:"wrong_by"`
}

// Wrongs splits wrong replies by the first thing that was wrong.
type Wrongs struct {
	Format   uint64 `json:"format"`   // no reply, or it cannot be read
	Question uint64 `json:"question"` // another name, type or class
	Case     uint64 `json:"case"`     // the name in other letter case
	RCode    uint64 `json:"rcode"`    // another response code
	Records  uint64 `json:"records"`  // the address missing, another, or one too many
}

// InFlight is the number of queries that have not ended yet.
func (c Counts) InFlight() uint64 {
	return c.Sent - c.Right - c.Late - c.Wrong - c.Truncated - c.ServFail - c.Lost
}

// Answered is the number of queries with any reply.
func (c Counts) Answered() uint64 {
	return c.Right + c.Late + c.Wrong + c.Truncated + c.ServFail
}

// count files a reply; late is only asked of right ones.
func (c *Counts) count(v verdict, late bool) {
	switch v {
	case right:
		if late {
			c.Late++
			return
		}
		c.Right++
		return
	case truncated:
		c.Truncated++
		return
	case servFail:
		c.ServFail++
		return
	case wrongFormat:
		c.WrongBy.Format++
	case wrongQuestion:
		c.WrongBy.Question++
	case wrongCase:
		c.WrongBy.Case++
	case wrongRCode:
		c.WrongBy.RCode++
	case wrongRecords:
		c.WrongBy.Records++
	}
	c.Wrong++
}

func (c *Counts) add(d *Counts) {
	c.Sent += d.Sent
	c.Right += d.Right
	c.Late += d.Late
	c.Wrong += d.Wrong
	c.Truncated += d.Truncated
	c.ServFail += d.ServFail
	c.Lost += d.Lost
	c.Resent += d.Resent
	c.Followed += d.Followed
	c.WrongBy.Format += d.WrongBy.Format
	c.WrongBy.Question += d.WrongBy.Question
	c.WrongBy.Case += d.WrongBy.Case
	c.WrongBy.RCode += d.WrongBy.RCode
	c.WrongBy.Records += d.WrongBy.Records
}
