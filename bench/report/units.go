package report

import "time"

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
