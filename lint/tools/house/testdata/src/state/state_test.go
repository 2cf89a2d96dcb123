package state

func restoreInTest() { limit = 3 }
