// Package container runs containers for tests as a kubelet and its engine have them
// run, by runc, without an engine: with the user, capabilities, no_new_privs, system
// calls, root, mounts and limit of memory of a manifest, in the network of a node or of a
// pod. Profiles of AppArmor and SELinux are not tried.
//
// An [Image] is what a released image has: the binary with its capability. A
// [Container] ends with the test at the latest.
//
// Goroutines: those of package space.
package container
