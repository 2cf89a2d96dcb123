package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// withLowPorts calls bind with the capability to bind ports below 1024, where the
// process is permitted to have it. The binary in the image carries it as permitted
// only, since one that carries it as effective cannot even be started where a
// container may not have it; so somebody has to raise it. Capabilities belong to
// threads.
func withLowPorts(bind func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // of which the first has the capability
	const bit = 1 << unix.CAP_NET_BIND_SERVICE
	if unix.Capget(&header, &data[0]) == nil && data[0].Permitted&bit != 0 {
		data[0].Effective |= bit
		_ = unix.Capset(&header, &data[0]) // otherwise bind says what is missing
	}
	return bind()
}
