// Package parted_partition is Salt's execution module "partition". Salt's source: salt/modules/parted_partition.py.
package parted_partition

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// The words that functions take.
const (
	units       = "s B kB MB MiB GB GiB TB TiB % cyl chs compact"
	diskFlags   = "cylinder_alignment pmbr_boot implicit_partition_table"
	flags       = "boot root swap hidden raid lvm lba hp-service palo prep msftres bios_grub atvrecv diag legacy_boot msftdata irst esp type"
	fileSystems = "btrfs ext2 ext3 ext4 fat fat32 fat16 linux-swap reiserfs hfs hfs+ hfsx NTFS ntfs ufs xfs"
	labels      = "aix amiga bsd dvh gpt loop mac msdos pc98 sun"
)

func available(e *modules.Env) (bool, string) {
	if runtime.GOOS == "windows" {
		return false, "The parted execution module failed to load Windows systems are not supported."
	}
	for _, program := range [...]string{"parted", "lsblk", "partprobe"} {
		if e.Which(program) == "" {
			return false, "The parted execution module failed to load " + program + " binary is not in the path."
		}
	}
	return true, ""
}

// oneOf reports whether an argument is one of the words.
func oneOf(words string, v any) bool {
	s, ok := v.(string)
	return ok && slices.Contains(strings.Fields(words), s)
}

func isBlock(c *modules.Call, device any) bool {
	name, ok := device.(string)
	if !ok || name == "" {
		return false
	}
	info, err := os.Stat(c.Path(name))
	return err == nil && info.Mode()&(os.ModeDevice|os.ModeCharDevice) == os.ModeDevice
}

// device checks that the function's device is a block device.
func device(c *modules.Call) error { return blocks(c, c.Value("device")) }

func blocks(c *modules.Call, devices ...any) error {
	for _, d := range devices {
		if !isBlock(c, d) {
			return modules.Errorf("Invalid device passed to partition module.")
		}
	}
	return nil
}

// number checks arguments that are numbers of partitions.
func number(c *modules.Call, problem string, params ...string) error {
	for _, p := range params {
		if _, err := c.Int(p); err != nil {
			return modules.Errorf("%s", problem)
		}
	}
	return nil
}

// boundary checks places on a disk: digits and dots, and a unit or nothing.
func boundary(c *modules.Call, params ...string) error {
	for _, p := range params {
		s := c.Str(p)
		unit := strings.TrimLeft(s, "0123456789.")
		if unit == s || unit != "" && !oneOf(units, unit) {
			return modules.Errorf(`Invalid partition boundary passed: "%s"`, s)
		}
	}
	return nil
}

// lines runs a program and returns the lines of both of its streams.
func lines(ctx context.Context, c *modules.Call, cmd ...any) (any, error) {
	text, err := saltcmd.Text(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, line := range pytext.SplitLines(text, false) {
		out = append(out, line)
	}
	return out, nil
}

// parted runs a command of parted on the function's device.
func parted(ctx context.Context, c *modules.Call, command ...any) (any, error) {
	return lines(ctx, c, append([]any{"parted", "-m", "-s", c.Value("device")}, command...)...)
}

func probe(ctx context.Context, c *modules.Call) (any, error) {
	if err := blocks(c, c.Extra...); err != nil {
		return nil, err
	}
	return lines(ctx, c, append([]any{"partprobe", "--"}, c.Extra...)...)
}

func list(ctx context.Context, c *modules.Call) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	cmd := []any{"parted", "-m", "-s", c.Value("device")}
	if unit := c.Value("unit"); pytext.Truth(unit) {
		if !oneOf(units, unit) {
			return nil, modules.Errorf("Invalid unit passed to partition.part_list")
		}
		cmd = append(cmd, "unit", unit)
	}
	r, err := saltcmd.All(ctx, c, append(cmd, "print")...)
	if err != nil {
		return nil, err
	}
	return parse(r.Lines(), c.Value("unit") == "chs")
}

// parse reads what parted prints for machines: a line about the disk and one for each partition.
func parse(lines []string, chs bool) (any, error) {
	info, partitions := map[string]any{}, map[string]any{}
	for _, line := range lines {
		if line == "BYT;" || line == "CHS;" || line == "CYL;" {
			continue
		}
		cols := strings.Split(strings.TrimRight(line, ";"), ":")
		if len(info) == 0 {
			names := [...]string{"disk", "size", "interface", "logical sector", "physical sector", "partition table", "model", "disk flags"}
			if len(cols) < len(names)-1 || !fill(info, names[:min(len(cols), len(names))], cols) {
				return nil, parseError()
			}
			continue
		}
		names := []string{"number", "start", "end"}
		if !chs {
			names = append(names, "size")
		}
		if last := len(cols) - 1; cols[last] == "free" {
			cols = cols[:last]
		} else {
			names = append(names, "file system", "name", "flags")
		}
		m := map[string]any{}
		if !fill(m, names, cols) {
			return nil, parseError()
		}
		partitions[cols[0]] = m
	}
	return map[string]any{"info": info, "partitions": partitions}, nil
}

// fill gives the values their names; false if there are not as many.
func fill(m map[string]any, names, values []string) bool {
	if len(names) != len(values) {
		return false
	}
	for i, n := range names {
		m[n] = values[i]
	}
	return true
}

func parseError() error {
	return modules.Errorf("Problem encountered while parsing output from parted")
}

func alignCheck(ctx context.Context, c *modules.Call) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	if !oneOf("minimal optimal", c.Value("part_type")) {
		return nil, modules.Errorf("Invalid part_type passed to partition.align_check")
	}
	if err := number(c, "Invalid partition passed to partition.align_check", "partition"); err != nil {
		return nil, err
	}
	return lines(ctx, c, "parted", "-m", c.Value("device"), "align-check", c.Value("part_type"), c.Value("partition"))
}

func check(ctx context.Context, c *modules.Call) (any, error) {
	return ofMinor(ctx, c, "check", "minor")
}

func copyPartition(ctx context.Context, c *modules.Call) (any, error) {
	return ofMinor(ctx, c, "cp", "from_minor", "to_minor")
}

func remove(ctx context.Context, c *modules.Call) (any, error) {
	return ofMinor(ctx, c, "rm", "minor")
}

// ofMinor runs a command of parted on partitions.
func ofMinor(ctx context.Context, c *modules.Call, command string, minors ...string) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	if err := number(c, "Invalid minor number passed to partition."+command, minors...); err != nil {
		return nil, err
	}
	cmd := []any{command}
	for _, m := range minors {
		cmd = append(cmd, c.Value(m))
	}
	return parted(ctx, c, cmd...)
}

func getID(ctx context.Context, c *modules.Call) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	if err := number(c, "Invalid minor number passed to partition.get_id", "minor"); err != nil {
		return nil, err
	}
	return lines(ctx, c, "sfdisk", "--print-id", c.Value("device"), c.Value("minor"))
}

func setID(ctx context.Context, c *modules.Call) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	if err := number(c, "Invalid minor number passed to partition.set_id", "minor"); err != nil {
		return nil, err
	}
	types, err := readTypes(ctx, c)
	if err != nil {
		return nil, err
	}
	id, ok := c.Value("system_id").(string)
	if _, known := types[id]; !ok || !known {
		return nil, modules.Errorf("Invalid system_id passed to partition.set_id")
	}
	return lines(ctx, c, "sfdisk", "--change-id", c.Value("device"), c.Value("minor"), id)
}

func systemTypes(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(readTypes(ctx, c))
}

func readTypes(ctx context.Context, c *modules.Call) (map[string]any, error) {
	text, err := saltcmd.Text(ctx, c, "sfdisk", "-T")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, line := range pytext.SplitLines(text, false) {
		if line == "" || strings.HasPrefix(line, "Id") {
			continue
		}
		f := strings.Fields(line)
		if len(f) < 2 {
			return nil, modules.IndexError()
		}
		out[f[0]] = f[1]
	}
	return out, nil
}

func mkfs(ctx context.Context, c *modules.Call) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	kind := c.Value("fs_type")
	if !oneOf(fileSystems, kind) {
		return nil, modules.Errorf("Invalid fs_type passed to partition.mkfs")
	}
	program := "mkfs." + kind.(string)
	switch kind {
	case "NTFS":
		program = "mkfs.ntfs"
	case "linux-swap":
		program = "mkswap"
	}
	if c.Which(program) == "" {
		return "Error: " + program + " is unavailable.", nil
	}
	return lines(ctx, c, program, c.Value("device"))
}

func mklabel(ctx context.Context, c *modules.Call) (any, error) {
	if !oneOf(labels, c.Value("label_type")) {
		return nil, modules.Errorf("Invalid label_type passed to partition.mklabel")
	}
	return parted(ctx, c, "mklabel", c.Value("label_type"))
}

func mkpart(ctx context.Context, c *modules.Call) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	if !oneOf("primary logical extended", c.Value("part_type")) {
		return nil, modules.Errorf("Invalid part_type passed to partition.mkpart")
	}
	cmd := []any{"parted", "-m", "-s", "--", c.Value("device"), "mkpart", c.Value("part_type")}
	if kind := c.Value("fs_type"); pytext.Truth(kind) {
		if !oneOf(fileSystems, kind) {
			return nil, modules.Errorf("Invalid fs_type passed to partition.mkpart")
		}
		cmd = append(cmd, kind)
	}
	start, end := c.Value("start"), c.Value("end")
	if start != nil && end != nil {
		if err := boundary(c, "start", "end"); err != nil {
			return nil, err
		}
	}
	for _, at := range [...]any{start, end} {
		if at == nil {
			at = ""
		}
		cmd = append(cmd, at)
	}
	return lines(ctx, c, cmd...)
}

func name(ctx context.Context, c *modules.Call) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	if err := number(c, "Invalid partition passed to partition.name", "partition"); err != nil {
		return nil, err
	}
	text := c.Str("name")
	for _, r := range text {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune(" _-", r) {
			return nil, modules.Errorf("Invalid characters passed to partition.name")
		}
	}
	return parted(ctx, c, "name", c.Value("partition"), "'"+text+"'")
}

func rescue(ctx context.Context, c *modules.Call) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	if err := boundary(c, "start", "end"); err != nil {
		return nil, err
	}
	return parted(ctx, c, "rescue", c.Value("start"), c.Value("end"))
}

func resize(ctx context.Context, c *modules.Call) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	if err := number(c, "Invalid minor number passed to partition.resize", "minor"); err != nil {
		return nil, err
	}
	if err := boundary(c, "start", "end"); err != nil {
		return nil, err
	}
	return lines(ctx, c, "parted", "-m", "-s", "--", c.Value("device"), "resize", c.Value("minor"), c.Value("start"), c.Value("end"))
}

func set(ctx context.Context, c *modules.Call) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	if err := number(c, "Invalid minor number passed to partition.set", "minor"); err != nil {
		return nil, err
	}
	if !oneOf(flags, c.Value("flag")) {
		return nil, modules.Errorf("Invalid flag passed to partition.set")
	}
	if !oneOf("on off", c.Value("state")) {
		return nil, modules.Errorf("Invalid state passed to partition.set")
	}
	return parted(ctx, c, "set", c.Value("minor"), c.Value("flag"), c.Value("state"))
}

func toggle(ctx context.Context, c *modules.Call) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	if err := number(c, "Invalid partition number passed to partition.toggle", "partition"); err != nil {
		return nil, err
	}
	if !oneOf(flags, c.Value("flag")) {
		return nil, modules.Errorf("Invalid flag passed to partition.toggle")
	}
	return parted(ctx, c, "toggle", c.Value("partition"), c.Value("flag"))
}

func diskSet(ctx context.Context, c *modules.Call) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	if !oneOf(diskFlags, c.Value("flag")) {
		return nil, modules.Errorf("Invalid flag passed to partition.disk_set")
	}
	if !oneOf("on off", c.Value("state")) {
		return nil, modules.Errorf("Invalid state passed to partition.disk_set")
	}
	return parted(ctx, c, "disk_set", c.Value("flag"), c.Value("state"))
}

func diskToggle(ctx context.Context, c *modules.Call) (any, error) {
	if err := device(c); err != nil {
		return nil, err
	}
	if !oneOf(diskFlags, c.Value("flag")) {
		return nil, modules.Errorf("Invalid flag passed to partition.disk_toggle")
	}
	return parted(ctx, c, "disk_toggle", c.Value("flag"))
}

func exists(_ context.Context, c *modules.Call) (any, error) {
	return isBlock(c, c.Value("device")), nil
}

func blockDevices(ctx context.Context, c *modules.Call) (any, error) {
	return lines(ctx, c, "lsblk", "-n", "-io", "KNAME", "-d", "-e", "1,7,11", "-l")
}
