package container

import (
	"fmt"
	"os"
)

// object is a part of a container's specification.
type object = map[string]any

// path is the environment of the image.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// specification is what an engine makes of a container.
func (c *Config) specification(root string) object {
	capabilities := make([]string, 0, len(c.Capabilities))
	for _, name := range c.Capabilities {
		capabilities = append(capabilities, "CAP_"+name)
	}
	linux := object{
		"namespaces": []object{
			{"type": "pid"},
			{"type": "ipc"},
			{"type": "uts"},
			{"type": "mount"},
			{"type": "network", "path": fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), c.Space.FD())},
		},
		"resources": c.resources(),
		// Who is not privileged cannot change the kernel's settings.
		"readonlyPaths": []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		"maskedPaths":   []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"},
	}
	if c.Confined {
		linux["seccomp"] = allowed()
	}
	return object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": c.UID, "gid": c.GID},
			"args": append([]string{entry}, c.Args...), "env": append([]string{path}, c.Env...), "cwd": "/",
			"capabilities":    object{"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
			"noNewPrivileges": c.NoNewPrivileges,
		},
		"root":   object{"path": root, "readonly": c.ReadOnlyRoot},
		"mounts": c.mounts(),
		"linux":  linux,
	}
}

func (c *Config) mounts() []object {
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755", "size=64k"}},
		{"destination": "/sys", "type": "none", "source": "/sys", "options": []string{"rbind", "ro", "nosuid", "noexec", "nodev"}},
	}
	for _, m := range c.Mounts {
		options := []string{"rbind", "rw"}
		if m.ReadOnly {
			options = []string{"rbind", "ro"}
		}
		mounts = append(mounts, object{"destination": m.Path, "type": "bind", "source": m.Source, "options": options})
	}
	return mounts
}

func (c *Config) resources() object {
	if c.Memory == 0 {
		return nil
	}
	return object{"memory": object{"limit": c.Memory}}
}
