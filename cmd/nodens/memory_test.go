package main

import (
	"bytes"
	"encoding/json"
	"math"
	"runtime/debug"
	"strings"
	"testing"

	"go.uber.org/zap"
)

func nopLog() *zap.Logger    { return zap.NewNop() }
func level() zap.AtomicLevel { return zap.NewAtomicLevel() }

func TestMemoryPolicy(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	if got := applyMemoryPolicy(32<<20, 0, keepMemory); got != (memoryPolicy{100, 0}) {
		t.Errorf("with the variables set the policy is %+v, want it unchanged", got)
	}
	want := memoryPolicy{GCPercent: 30, Limit: 32<<20*8/5 + 56<<20}
	if got := applyMemoryPolicy(32<<20, 0, noEnv); got.GCPercent != want.GCPercent || got.Limit-want.Limit > 1 || want.Limit-got.Limit > 1 {
		t.Errorf("policy %+v, want %+v", got, want)
	}
	debug.SetGCPercent(-1)
	if got := currentMemoryPolicy().GCPercent; got != -1 {
		t.Errorf("with the collector off the policy says %d percent", got)
	}
}

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	at := level()
	log := newLogger(LogConfig{Level: "warn", Format: "json"}, at, &out)
	log.Info("hidden")
	at.SetLevel(logLevel("info"))
	log.Info("shown", zap.String("key", "value"))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["message"] != "shown" || line["key"] != "value" || line["level"] != "info" {
		t.Errorf("log is %q, %v", &out, err)
	}
	out.Reset()
	newLogger(LogConfig{Level: "info", Format: "console"}, at, &out).Info("shown")
	if !strings.Contains(out.String(), "INFO\tshown") {
		t.Errorf("console log is %q", &out)
	}
}
