package main

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// giveUpPowers leaves the process two capabilities of those it was started with: one
// for ports below 1024 and one for interface and rules. It parses what strangers send,
// and node-cache's manifest makes it root, perhaps with every power there is.
// Capabilities belong to threads, so every thread gives them up.
func giveUpPowers() error {
	const keep = 1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_NET_ADMIN
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // capabilities 0 to 31, and the others
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("capabilities cannot be read: %w", err)
	}
	if data[0].Effective&(1<<unix.CAP_SETPCAP) != 0 {
		if err := closeWay(keep); err != nil {
			return err
		}
	}
	left := data[0].Permitted & keep
	data = [2]unix.CapUserData{{Permitted: left, Effective: left}}
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	return powersStay(errno)
}

// closeWay keeps a program that this one would start from getting them back.
func closeWay(keep uint64) error {
	for capability := uintptr(0); capability < 64; capability++ {
		if keep&(1<<capability) != 0 {
			continue
		}
		_, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, capability, 0)
		if errno == unix.EINVAL {
			return nil // this kernel has no more of them
		}
		if err := powersStay(errno); err != nil {
			return err
		}
	}
	return nil
}

func powersStay(errno syscall.Errno) error {
	switch errno {
	case 0:
		return nil
	case unix.ENOTSUP:
		return errors.New("capabilities cannot be given up by a binary built with cgo; build it with CGO_ENABLED=0, as releases are")
	}
	return fmt.Errorf("capabilities cannot be given up: %w", errno)
}
