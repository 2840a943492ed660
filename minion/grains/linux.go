package grains

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/modules/pyobj"
)

// linuxSources returns the sources of core.py for Linux. They compile on every platform, so that trees of files
// can be described anywhere.
func linuxSources() []source {
	return []source{
		{name: "core.os_data", gather: linuxOS},
		{name: "core.cpu", gather: linuxCPU},
		{name: "core.memory", gather: linuxMemory},
		{name: "core.gpu", gather: linuxGPU},
		{name: "core.init", gather: linuxInit},
		{name: "core.systemd", gather: linuxSystemd},
		{name: "core.selinux", gather: linuxSELinux},
		{name: "core.devicetree", gather: deviceTree},
		{name: "core.hw_data",
			gather: func(ctx context.Context, h *host) (map[string]any,
				error) {
				return h.hardware(ctx), nil
			}},
		{name: "core.virtual", gather: linuxVirtual},
		{name: "core.machine_id", gather: machineID},
		{name: "core.dns", gather: dns},
		{name: "core.default_gateway", gather: defaultGateway},
		{name: "core.kernelparams", gather: kernelParams},
		{name: "core.fibre_channel_host",
			gather: func(_ context.Context, h *host) (map[string]any, error) {
				return map[string]any{"fibre_channel_host": h.isDir("/sys/class/fc_host")}, nil
			}},
	}
}

// linuxOS returns os, os_family, the other names of the distribution, and osarch.
func linuxOS(ctx context.Context, h *host) (map[string]any, error) {
	g := map[string]any{}
	for k, v := range h.distro() {
		g[k] = v
	}
	text := func(key string) string { s, _ := g[key].(string); return s }
	if arch := h.osArch(ctx, text("os_family")); arch != nil {
		g["osarch"] = arch
	}
	if r := text("osrelease"); r != "" {
		for k, v := range releaseGrains(text("os"), text("osfullname"), r) {
			g[k] = v
		}
	}
	return g, nil
}

// osArch returns the architecture under the package manager's name (_osarch).
func (h *host) osArch(ctx context.Context, family string) any {
	switch family {
	case "Debian":
		if out := strings.TrimSpace(h.output(ctx, "dpkg", "--print-architecture")); out != "" {
			return out
		}
		return h.dpkgArch()
	case "RedHat", "Suse":
		if h.which("rpm") != "" {
			if out := strings.TrimSpace(h.output(ctx, "rpm", "--eval", "%{_host_cpu}")); out != "" {
				return out
			}
		}
	case "NILinuxRT", "Poky":
		return nested.Anys(opkgArchitectures(h.output(ctx, "opkg", "print-architecture")))
	}
	if m := h.uname().machine; m != "" {
		return m
	}
	return nil
}

// dpkgArch reads the architecture from dpkg's database, for hosts where dpkg cannot run.
func (h *host) dpkgArch() any {
	text, err := h.read("/var/lib/dpkg/status")
	if err != nil {
		return nil
	}
	_, after, ok := strings.Cut("\n"+text, "\nPackage: dpkg\n")
	if !ok {
		return nil
	}
	stanza, _, _ := strings.Cut(after, "\n\n")
	for _, line := range lines(stanza) {
		if arch, ok := strings.CutPrefix(line, "Architecture: "); ok {
			return arch
		}
	}
	return nil
}

// opkgArchitectures returns the architectures by descending priority.
func opkgArchitectures(out string) []string {
	var names []string
	var priorities []int
	for _, line := range lines(out) {
		f := strings.Fields(line)
		if len(f) != 3 || !strings.HasPrefix(line, "arch") {
			continue
		}
		p, err := strconv.Atoi(f[2])
		if err != nil {
			continue
		}
		i := 0
		for i < len(names) && priorities[i] >= p {
			i++
		}
		names = append(names[:i], append([]string{f[1]}, names[i:]...)...)
		priorities = append(priorities[:i], append([]int{p}, priorities[i:]...)...)
	}
	return names
}

// linuxCPU returns num_cpus, cpu_model and cpu_flags.
func linuxCPU(_ context.Context, h *host) (map[string]any, error) {
	count, model, flags := int64(0), "Unknown", []string{}
	text, err := h.read("/proc/cpuinfo")
	for _, line := range lines(text) {
		key, rest, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value, _, _ := strings.Cut(rest, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "processor":
			count++
		case "# processors":
			count = cleanNumber(value)
		case "vendor_id", "model name", "cpu":
			model = value
		case "flags", "Features":
			flags = strings.Fields(value)
		case "Processor":
			model, _, _ = strings.Cut(value, "-")
			count = 1
		}
	}
	return map[string]any{"num_cpus": count, "cpu_model": model, "cpu_flags": nested.Anys(flags)},
		err
}

// linuxMemory returns mem_total and swap_total in MiB.
func linuxMemory(_ context.Context, h *host) (map[string]any, error) {
	g := map[string]any{"mem_total": int64(0), "swap_total": int64(0)}
	text, err := h.read("/proc/meminfo")
	for _, line := range lines(text) {
		switch key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) {
		case "MemTotal":
			g["mem_total"] = cleanNumber(value) / 1024
		case "SwapTotal":
			g["swap_total"] = cleanNumber(value) / 1024
		}
	}
	return g, err
}

// linuxGPU returns gpus and num_gpus if lspci is installed.
func linuxGPU(ctx context.Context, h *host) (map[string]any, error) {
	if !enabled(h.o.Opts["enable_lspci"]) || !enabled(h.o.Opts["enable_gpu_grains"]) ||
		h.which("lspci") == "" {
		return nil, nil
	}
	gpus := parseGPUs(h.output(ctx, "lspci", "-vmm"))
	return map[string]any{"num_gpus": int64(len(gpus)), "gpus": gpus}, nil
}

// parseGPUs parses the output of "lspci -vmm".
func parseGPUs(out string) []any {
	gpus := []any{}
	device := map[string]string{}
	for _, line := range append(lines(out), "") {
		if line != "" {
			if key, value, ok := strings.Cut(line, ":"); ok {
				device[strings.TrimSpace(key)] = strings.TrimSpace(value)
			}
			continue
		}
		switch strings.ToLower(device["Class"]) {
		case "3d controller", "display controller", "processing accelerators",
			"vga compatible controller":
			gpus = append(gpus, pyobj.NewDict("vendor", gpuVendor(device["Vendor"]), "model",
				device["Device"]))
		}
		device = map[string]string{}
	}
	return gpus
}

// gpuVendor returns the first known vendor among the words of a name. As in Salt, "cirrus logic" never matches.
func gpuVendor(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
	for _, known := range []string{"nvidia", "amd", "ati", "intel", "vmware", "matrox", "aspeed"} {
		for _, w := range words {
			if w == known {
				return known
			}
		}
	}
	return "unknown"
}

// linuxInit returns init, the name of the init system (_linux_init_system).
func linuxInit(_ context.Context, h *host) (map[string]any, error) {
	return map[string]any{"init": h.initSystem()}, nil
}

func (h *host) initSystem() string {
	if h.exists("/run/systemd/system") {
		return "systemd"
	}
	text, err := h.read("/proc/1/cmdline")
	args := strings.Fields(strings.ReplaceAll(text, "\x00", " "))
	if err != nil || len(args) == 0 {
		return "unknown"
	}
	if bin := h.which(args[0]); strings.HasSuffix(bin, "bin/init") {
		return h.initByContent(bin)
	}
	for _, name := range []string{"supervisord", "dumb-init", "tini"} {
		if p := h.which(name); p != "" && slices.Contains(args, p) {
			return name
		}
	}
	if len(args) == 1 && args[0] == "runit" || slices.Contains(args, "/sbin/my_init") {
		return "runit"
	}
	return "unknown"
}

// initByContent searches the init program itself for the name of a known init system. The first name of the
// list wins, within the part of the file that Salt reads at once.
func (h *host) initByContent(bin string) string {
	f, err := os.Open(h.path(bin))
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	const piece, edge = 262144, len("sysvinit") - 1
	buf := make([]byte, edge+piece)
	kept := 0
	for read := 0; read < 64<<20; {
		n, err := io.ReadFull(f, buf[kept:kept+piece])
		read += n
		if n == 0 {
			return "unknown"
		}
		text := bytes.ToLower(buf[:kept+n])
		for _, name := range []string{"upstart", "sysvinit", "systemd"} {
			if bytes.Contains(text, []byte(name)) {
				return name
			}
		}
		if err != nil {
			return "unknown"
		}
		kept = copy(buf, buf[kept+n-edge:kept+n])
	}
	return "unknown"
}

// linuxSystemd returns systemd if its tools are installed.
func linuxSystemd(ctx context.Context, h *host) (map[string]any, error) {
	if h.which("systemctl") == "" || h.which("localectl") == "" {
		return nil, nil
	}
	version, features := "UNDEFINED", ""
	out, code, err := h.exec(ctx, h.which("systemctl"), "--version")
	if l := lines(out); err == nil && code == 0 && len(l) > 0 &&
		strings.HasPrefix(l[0], "systemd ") {
		if f := strings.Fields(l[0]); len(f) > 1 {
			version = f[1]
		}
		if len(l) > 1 {
			features = l[1]
		}
	}
	return map[string]any{"systemd": pyobj.NewDict("version", version, "features", features)}, err
}

// linuxSELinux returns selinux if its tools are installed.
func linuxSELinux(ctx context.Context, h *host) (map[string]any, error) {
	bin := h.which("selinuxenabled")
	if bin == "" {
		return nil, nil
	}
	_, code, err := h.exec(ctx, bin)
	g := map[string]any{"enabled": err == nil && code == 0}
	if h.which("getenforce") != "" {
		g["enforced"] = strings.TrimSpace(h.output(ctx, "getenforce"))
	}
	return map[string]any{"selinux": g}, err
}

// deviceTree returns manufacturer, productname and serialnumber of boards with a device tree.
func deviceTree(_ context.Context, h *host) (map[string]any, error) {
	if !h.isDir("/proc/device-tree") {
		return nil, nil
	}
	read := func(name string) string {
		if name = "/proc/device-tree/" + name; !h.isFile(name) {
			return ""
		}
		text, err := h.read(name)
		if err != nil {
			return ""
		}
		return strings.TrimRight(text, "\x00")
	}
	g := map[string]any{}
	if model := read("model"); model != "" {
		if maker, name, ok := strings.Cut(model, ","); ok {
			g["manufacturer"], g["productname"] = maker, name
		} else {
			g["productname"] = model
		}
	}
	if id := read("system-id"); id != "" {
		g["serialnumber"] = id
	}
	if serial := read("serial-number"); serial != "" {
		g["serialnumber"] = serial
	}
	return g, nil
}

// kernelParams returns kernelparams: pairs of name and value. The value is nil unless the parameter has exactly
// one "=".
func kernelParams(_ context.Context, h *host) (map[string]any, error) {
	text, err := h.read("/proc/cmdline")
	if err != nil {
		return nil, nil //nolint:nilerr // without the file there is no such grain
	}
	words, ok := shellSplit(text)
	if !ok {
		return nil, nil
	}
	params := make([]any, len(words))
	for i, w := range words {
		parts := strings.Split(w, "=")
		var value any
		if len(parts) == 2 {
			value = strings.Trim(parts[1], `"`)
		}
		params[i] = []any{parts[0], value}
	}
	return map[string]any{"kernelparams": params}, nil
}

// shellSplit splits like Python's shlex.split. It returns false for an unterminated quotation.
func shellSplit(s string) ([]string, bool) {
	var words []string
	var word strings.Builder
	inWord := false
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote == 0 && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		case quote == 0 && (c == '"' || c == '\''):
			quote, inWord = c, true
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'':
			if i++; i >= len(s) {
				return nil, false
			}
			if quote == '"' && s[i] != '"' && s[i] != '\\' {
				word.WriteByte('\\')
			}
			word.WriteByte(s[i])
			inWord = true
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, quote == 0
}

// disks returns disks (rotating) and ssds from sysfs (salt/grains/disks.py).
func disks(ctx context.Context, h *host) (map[string]any, error) {
	if h.uname().sysname != "Linux" {
		return platformDisks(ctx, h)
	}
	rotating, solid := []any{}, []any{}
	for _, name := range h.unsorted("/sys/block") {
		link, err := os.Readlink(h.path("/sys/block/" + name))
		if err != nil || strings.HasPrefix(link, "../devices/virtual/") {
			continue
		}
		flag, err := h.read("/sys/block/" + name + "/queue/rotational")
		switch {
		case err != nil:
		case strings.HasPrefix(flag, "0"):
			solid = append(solid, name)
		case strings.HasPrefix(flag, "1"):
			rotating = append(rotating, name)
		}
	}
	return map[string]any{"disks": rotating, "ssds": solid}, nil
}

// unsorted lists a directory in file system order, like Python's glob.
func (h *host) unsorted(dir string) []string {
	f, err := os.Open(h.path(dir))
	if err != nil {
		return nil
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil
	}
	return names
}

// lvm returns lvm: volume groups and their volumes (salt/grains/lvm.py).
func lvm(ctx context.Context, h *host) (map[string]any, error) {
	if h.uname().sysname != "Linux" || h.which("lvm") == "" {
		return nil, nil
	}
	groups := &pyobj.Dict{}
	run := func(args ...string) []string {
		result, _, err := h.exec(ctx, append([]string{h.which("lvm")}, args...)...)
		if err != nil {
			return nil
		}
		return lines(result)
	}
	for _, vg := range run("vgs", "-o", "vg_name", "--noheadings") {
		vg = strings.TrimSpace(vg)
		if !isVolumeName(vg) {
			continue // a warning, not a name
		}
		volumes := []any{}
		for _, lv := range run("lvs", "-o", "lv_name", "--noheadings", vg) {
			if lv = strings.TrimSpace(lv); isVolumeName(lv) {
				volumes = append(volumes, lv)
			}
		}
		_ = groups.Set(vg, volumes)
	}
	return map[string]any{"lvm": groups}, nil
}

// isVolumeName reports whether a line of LVM's output is a name, not a message.
func isVolumeName(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') &&
			!strings.ContainsRune("+_.-", r) {
			return false
		}
	}
	return s != ""
}

// mdadm returns mdadm, the software RAID devices (salt/grains/mdadm.py).
func mdadm(_ context.Context, h *host) (map[string]any, error) {
	text, err := h.read("/proc/mdstat")
	if err != nil {
		return nil, nil //nolint:nilerr // without the file there is no such grain
	}
	var names []string
	for _, line := range lines(text) {
		if strings.HasPrefix(line, "Personalities : ") ||
			strings.HasPrefix(line, "unused devices:") {
			continue
		}
		if name, _, ok := strings.Cut(line, " : "); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return map[string]any{"mdadm": nested.Anys(slices.Sorted(slices.Values(names)))}, nil
}

// fibreChannel returns fc_wwn if the option fibre_channel_grains is on.
func fibreChannel(_ context.Context, h *host) (map[string]any, error) {
	if !truth(h.o.Opts["fibre_channel_grains"]) {
		return nil, nil
	}
	if h.uname().sysname != "Linux" {
		return map[string]any{"fc_wwn": false}, nil
	}
	names, err := filepath.Glob(h.path("/sys/class/fc_host/*/port_name"))
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for _, line := range lines(string(b)) {
			if line = strings.TrimRight(line, " \t\r"); len(line) >= 2 {
				list = append(list, line[2:])
			}
		}
	}
	return map[string]any{"fc_wwn": list}, nil
}

// iscsi returns iscsi_iqn if the option iscsi_grains is on.
func iscsi(_ context.Context, h *host) (map[string]any, error) {
	if !truth(h.o.Opts["iscsi_grains"]) {
		return nil, nil
	}
	if h.uname().sysname != "Linux" {
		return map[string]any{"iscsi_iqn": false}, nil
	}
	list := []any{}
	text, _ := h.read("/etc/iscsi/initiatorname.iscsi")
	for _, line := range lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "InitiatorName="); ok {
			list = append(list, name)
		}
	}
	return map[string]any{"iscsi_iqn": list}, nil
}

// nvme returns nvme_nqn if the option nvme_grains is on.
func nvme(_ context.Context, h *host) (map[string]any, error) {
	if !truth(h.o.Opts["nvme_grains"]) {
		return nil, nil
	}
	if h.uname().sysname != "Linux" {
		return map[string]any{"nvme_nqn": false}, nil
	}
	list := []any{}
	text, _ := h.read("/etc/nvme/hostnqn")
	for _, line := range lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "nqn.") {
			list = append(list, line)
		}
	}
	return map[string]any{"nvme_nqn": list}, nil
}
