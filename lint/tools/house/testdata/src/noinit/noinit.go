package noinit

type t struct{}

func (t) init() {}

func init() {} // want `init runs before main`
