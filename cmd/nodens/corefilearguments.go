package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// argumentRule is what the arguments of a statement have to be, though nothing here
// depends on them: what CoreDNS refuses was meant as something else.
type argumentRule struct {
	want string
	fits func(args []string) bool
}

// check is a mistake where the arguments of s do not fit, and then false.
func (c *corefile) check(s *statement, rule argumentRule) bool {
	args := s.texts()
	if rule.fits == nil || rule.fits(args) {
		return true
	}
	what := fmt.Sprintf("%s has %q", s.name(), cut(strings.Join(args, " ")))
	if len(args) == 0 {
		what = s.name() + " says nothing"
	}
	c.wrong(s, what, "write "+rule.want)
	return false
}

func noArguments() argumentRule {
	return argumentRule{"nothing behind it", func(args []string) bool { return len(args) == 0 }}
}

// oneNumber is a whole number from 0 to high.
func oneNumber(high int) argumentRule {
	return argumentRule{"a whole number from 0 on", func(args []string) bool {
		if len(args) != 1 {
			return false
		}
		n, err := strconv.Atoi(args[0])
		return err == nil && n >= 0 && n <= high
	}}
}

// oneDuration is a duration of at least low.
func oneDuration(low time.Duration) argumentRule {
	return argumentRule{"a duration such as 10s", func(args []string) bool { return len(args) == 1 && isDuration(args[0], low) }}
}

func isDuration(text string, low time.Duration) bool {
	d, err := time.ParseDuration(text)
	return err == nil && d >= low
}

// forwardArguments are those of options of forward.
func forwardArguments() map[string]argumentRule {
	return map[string]argumentRule{
		"force_tcp":                        noArguments(),
		"prefer_udp":                       noArguments(),
		"failfast_all_unhealthy_upstreams": noArguments(),
		"max_fails":                        oneNumber(math.MaxUint32),
		"max_connect_attempts":             oneNumber(math.MaxUint32),
		"max_idle_conns":                   oneNumber(math.MaxInt),
		"max_concurrent":                   oneNumber(math.MaxInt),
		"expire":                           oneDuration(0),
		"max_age":                          oneDuration(0),
		"read_timeout":                     oneDuration(1),
		"health_check":                     {"health_check DURATION [no_rec] [domain NAME]", isHealthCheck},
		"failover": {"names of response codes such as SERVFAIL", func(args []string) bool {
			return len(args) > 0 && !slices.ContainsFunc(args, func(a string) bool { return dns.StringToRcode[strings.ToUpper(a)] == dns.RcodeSuccess })
		}},
	}
}

func isHealthCheck(args []string) bool {
	if len(args) == 0 || !isDuration(args[0], 0) {
		return false
	}
	for i := 1; i < len(args); i++ {
		switch args[i] {
		case "no_rec":
		case "domain":
			i++
			if i == len(args) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// directiveArguments are those of directives that are always so, or have a form of
// their own here.
func directiveArguments() map[string]argumentRule {
	return map[string]argumentRule{
		"debug": noArguments(),
		"loop":  noArguments(),
		"errors": {"errors [stdout]", func(args []string) bool {
			return len(args) == 0 || len(args) == 1 && args[0] == "stdout"
		}},
		"reload": {"reload [INTERVAL [JITTER]], an interval of at least 2s and a jitter of 0s or at least 1s", isReload},
		"loadbalance": {"loadbalance [round_robin], or weighted and the path of a file", func(args []string) bool {
			return len(args) == 0 || len(args) == 1 && args[0] == "round_robin" || len(args) == 2 && args[0] == "weighted"
		}},
		"timeouts": noArguments(),
	}
}

func isReload(args []string) bool {
	if len(args) == 2 && !isDuration(args[1], time.Second) {
		jitter, err := time.ParseDuration(args[1])
		if err != nil || jitter != 0 {
			return false
		}
	}
	return len(args) == 0 || len(args) <= 2 && isDuration(args[0], 2*time.Second)
}

// readErrors looks at what is not taken over: errors are logged at a bounded rate.
func readErrors(c *corefile, _ *corefileBlock, s *statement) {
	for i := range s.block {
		switch o := &s.block[i]; o.name() {
		case "stacktrace":
		case "consolidate":
			c.check(o, argumentRule{"consolidate DURATION REGEXP [LEVEL] [show_first]", isConsolidate})
		default:
			c.unknownOption(o, "errors", "consolidate", "stacktrace")
		}
	}
}

func isConsolidate(args []string) bool {
	if len(args) < 2 || len(args) > 4 || !isDuration(args[0], math.MinInt64) {
		return false
	}
	_, err := regexp.Compile(args[1])
	rest := args[2:]
	if len(rest) > 0 && slices.Contains([]string{"warning", "error", "info", "debug"}, rest[0]) {
		rest = rest[1:]
	}
	return err == nil && (len(rest) == 0 || len(rest) == 1 && rest[0] == "show_first")
}

// checkLog looks at which replies are to be logged.
func (c *corefile) checkLog(s *statement) {
	classes := []string{"all", "denial", "error", "success"}
	for i := range s.block {
		o := &s.block[i]
		if o.name() != "class" {
			c.unknownOption(o, "log", "class")
			continue
		}
		c.check(o, argumentRule{"some of all, denial, error and success", func(args []string) bool {
			return len(args) > 0 && len(without(args, classes)) == 0
		}})
	}
}

// isTimeout says that a text is a duration, or a number of seconds, that CoreDNS takes for
// clients.
func isTimeout(args []string) bool {
	if len(args) != 1 {
		return false
	}
	text := args[0]
	if _, err := strconv.Atoi(text); err == nil {
		text += "s"
	}
	return isDuration(text, time.Second) && !isDuration(text, 24*time.Hour+1)
}

// isPrefetch says that the arguments behind the number of hits are a duration and a
// percentage.
func isPrefetch(args []string) bool {
	if len(args) > 1 && !isDuration(args[1], 0) {
		return false
	}
	if len(args) < 3 {
		return true
	}
	text, ok := strings.CutSuffix(args[2], "%")
	n, err := strconv.Atoi(text)
	return ok && err == nil && n >= 10 && n <= 90
}

// isServiceName says that a text is NAME or NAMESPACE/NAME of a Service.
func isServiceName(text string) bool {
	const label = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
	return regexp.MustCompile("^(" + label + "/)?" + label + "$").MatchString(text)
}
