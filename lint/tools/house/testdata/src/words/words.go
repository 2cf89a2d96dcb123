package words

type connManager struct { // want `connManager: the word "manager" fits anything`
	HTTPHelper int // want `HTTPHelper: the word "helper" fits anything`
	serviceIP  int
}

func futile(utility int) int { return utility }
