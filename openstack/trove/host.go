package trove

import (
	"context"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// hardware implements get_hwinfo of Rackspace's C++ agent. No current manager of Trove has it.
func hardware(c *modules.Call) (any, error) {
	total := c.Grain("mem_total")
	cpus := c.Grain("num_cpus")
	if total == nil || cpus == nil {
		return nil, modules.Errorf("cannot tell the hardware: the grains mem_total and num_cpus are missing")
	}
	return map[string]any{"mem_total": total, "num_cpus": cpus}, nil
}

// filesystemStats returns the sizes of the data volume.
func (g *guest) filesystemStats() (map[string]any, error) {
	fs, err := statfs(g.c.Path(g.mountPoint))
	if err != nil {
		return nil, modules.Errorf("Filesystem not found (%s)", g.mountPoint)
	}
	total, free := fs.blocks*fs.size, fs.free*fs.size
	return map[string]any{"block_size": fs.size, "total_blocks": fs.blocks, "free_blocks": fs.free, "total": gigabytes(total),
		"free": free, "used": gigabytes(total - free)}, nil
}

// gigabytes implements trove.common.utils.to_gb: two decimals, and at least 0.01 for a positive number.
func gigabytes(n int64) float64 {
	if n == 0 {
		return 0
	}
	f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(n)/(1<<30), 'f', 2, 64), 64)
	return math.Max(f, 0.01)
}

// blocks holds the sizes of a file system.
type blocks struct{ size, blocks, free int64 }

// isMount reports whether a path is a mount point.
func (g *guest) isMount(ctx context.Context, place string) (bool, error) {
	v, err := g.c.Exec(ctx, "mount.active")
	if err != nil {
		return false, err
	}
	active, _ := v.(map[string]any)
	_, ok := active[path.Clean(place)]
	return ok, nil
}

func (g *guest) mountVolume(ctx context.Context) error {
	device, place := g.c.Str("device_path"), g.c.Str("mount_point")
	if device == "" || place == "" {
		return modules.Usagef("device_path and mount_point must be given")
	}
	v, err := g.c.ExecKw(ctx, "mount.mount", []any{place, device},
		map[string]any{"mkmnt": true, "fstype": g.fsType, "opts": g.mountOptions})
	if err != nil {
		return err
	}
	if v != true {
		return modules.Errorf("Could not mount '%s'.\nExc: %s", place, pytext.Str(v))
	}
	if !g.c.Bool("write_to_fstab") {
		return nil
	}
	_, err = g.c.Exec(ctx, "mount.set_fstab", place, device, g.fsType, g.mountOptions)
	return err
}

// unmountVolume unmounts a volume. As in Trove, it does nothing if none is mounted.
func (g *guest) unmountVolume(ctx context.Context) error {
	place := g.c.Str("mount_point")
	if place == "" {
		return modules.Usagef("mount_point must be given")
	}
	mounted, err := g.isMount(ctx, place)
	if err != nil || !mounted {
		return err
	}
	v, err := g.c.Exec(ctx, "mount.umount", place)
	if err == nil && v != true {
		err = modules.Errorf("Error unmounting '%s'.\nExc: %s", place, pytext.Str(v))
	}
	return err
}

// resizeFS extends a file system to the size of its device. An ext file system is unmounted first, unless it is
// resized online.
func (g *guest) resizeFS(ctx context.Context) error {
	device, place, online := g.c.Str("device_path"), g.c.Str("mount_point"), g.c.Bool("online")
	if device == "" {
		return modules.Usagef("device_path must be given")
	}
	if err := g.command(ctx, "blockdev", "--getsize64", device); err != nil {
		return modules.Errorf("Device '%s' is not ready.\nExc: %v", device, err)
	}
	var steps [][]string
	switch {
	case g.fsType == "xfs":
		// XFS can only grow while it is mounted.
		if _, err := g.c.Exec(ctx, "xfs.growfs", place); err != nil {
			return modules.Errorf("Error resizing the filesystem with device '%s'.\nExc: %v", device, err)
		}
		return nil
	case online:
		steps = [][]string{{"resize2fs", device}}
	default:
		if err := g.unmountVolume(ctx); err != nil {
			return err
		}
		steps = [][]string{{"e2fsck", "-f", "-p", device}, {"resize2fs", device}}
	}
	for _, args := range steps {
		r, err := g.c.Cmd(ctx, modules.Command{Args: args})
		if err != nil {
			return modules.Errorf("Error resizing the filesystem with device '%s'.\nExc: %v", device, err)
		}
		// Exit code 1 of e2fsck means that errors were corrected.
		if r.ExitCode != 0 && (args[0] != "e2fsck" || r.ExitCode != 1) {
			return modules.Errorf("Error resizing the filesystem with device '%s'.\nExc: %s", device,
				strings.TrimSpace(string(r.Stderr)))
		}
	}
	return nil
}

// freezeLimit is how many seconds a volume may stay frozen, since the call that thaws it may never arrive.
const freezeLimit = 600

// freeze flushes and freezes the data volume (pre_create_backup).
func (g *guest) freeze(ctx context.Context) (any, error) {
	if _, err := g.c.ExecKw(ctx, "fs.freeze", []any{g.mountPoint}, map[string]any{"timeout": int64(freezeLimit)}); err != nil {
		return nil, err
	}
	return map[string]any{}, nil
}

// thaw thaws the data volume (post_create_backup).
func (g *guest) thaw(ctx context.Context) (any, error) {
	if _, err := g.c.Exec(ctx, "fs.thaw", g.mountPoint); err != nil {
		return nil, err
	}
	return map[string]any{}, nil
}

// command runs a program that must succeed.
func (g *guest) command(ctx context.Context, args ...string) error {
	r, err := g.c.Cmd(ctx, modules.Command{Args: args})
	if err != nil {
		return modules.Errorf("cannot run %s: %v", args[0], err)
	}
	if r.ExitCode != 0 {
		return modules.Errorf("%s failed with %d: %s", args[0], r.ExitCode, strings.TrimSpace(string(r.Stderr)))
	}
	return nil
}

// writeRoots writes a file that only this process's user can read.
func (g *guest) writeRoots(name, text string) error {
	if err := atomicfile.WriteFile(g.c.Path(name), []byte(text), 0o600); err != nil {
		return modules.Errorf("cannot write %s: %v", name, err)
	}
	return nil
}
