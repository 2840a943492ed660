//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package grains

import (
	"context"
	"maps"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
)

// This file has the grains that the BSDs and macOS provide through sysctl.

// sysctl returns one value as text, or "" if it is unknown.
func (h *host) sysctl(ctx context.Context, name string) string {
	bin := h.which("sysctl")
	if bin == "" {
		return ""
	}
	out, code, err := h.exec(ctx, bin, "-n", name)
	if err != nil || code != 0 {
		return ""
	}
	return strings.TrimSpace(out)
}

// bsdOS returns the names of a BSD. FreeBSD's userland has a separate version.
func bsdOS(ctx context.Context, h *host) (map[string]any, error) {
	u := h.uname()
	release, _, _ := strings.Cut(u.release, "-")
	if u.sysname == "FreeBSD" {
		if v, _, _ := strings.Cut(h.output(ctx, "freebsd-version", "-u"), "-"); v != "" {
			release = v
		}
	}
	full := u.sysname + " " + release
	g := map[string]any{
		"os": u.sysname, "os_family": u.sysname, "osfullname": full, "osrelease": release,
		"osarch": u.machine, "ps": "ps auxwww",
	}
	maps.Copy(g, releaseGrains(u.sysname, full, release))
	return g, nil
}

// bsdHardware returns processors and memory.
func bsdHardware(ctx context.Context, h *host) (map[string]any, error) {
	memory := cleanNumber(h.sysctl(ctx, "hw.physmem"))
	if memory <= 0 {
		memory = cleanNumber(h.sysctl(ctx, "hw.physmem64"))
	}
	g := map[string]any{
		"num_cpus": cleanNumber(h.sysctl(ctx, "hw.ncpu")), "cpu_model": h.sysctl(ctx, "hw.model"),
		"cpuarch":   h.sysctl(ctx, "hw.machine"),
		"mem_total": memory >> 20, "swap_total": cleanNumber(h.sysctl(ctx, "vm.swap_total")) >> 20,
	}
	if dmesg, err := h.read("/var/run/dmesg.boot"); err == nil && h.uname().sysname == "FreeBSD" {
		g["cpu_flags"] = nested.Anys(dmesgFlags(dmesg))
	}
	return g, nil
}

// freebsdMachine returns the firmware's strings and the kind of virtual machine.
func freebsdMachine(ctx context.Context, h *host) (map[string]any, error) {
	g := map[string]any{"virtual": "physical"}
	kenv := func(name string) string {
		out := h.output(ctx, "kenv", name)
		if strings.HasPrefix(out, "kenv:") {
			return ""
		}
		return out
	}
	if h.which("kenv") != "" {
		for _, f := range [][2]string{
			{"biosversion", "smbios.bios.version"}, {"biosvendor", "smbios.bios.vendor"},
			{"manufacturer", "smbios.system.maker"},
			{"serialnumber", "smbios.system.serial"}, {"productname", "smbios.system.product"},
			{"biosreleasedate", "smbios.bios.reldate"},
			{"uuid", "smbios.system.uuid"},
		} {
			g[f[0]] = cleaned(f[0], kenv(f[1]))
		}
		maker, _ := g["manufacturer"].(string)
		product, _ := g["productname"].(string)
		freebsdVirtual(g, maker, product)
	}
	switch {
	case strings.Contains(h.sysctl(ctx, "hw.hv_vendor"), "bhyve"):
		g["virtual"] = "bhyve"
	case strings.Contains(h.sysctl(ctx, "hw.model"), "QEMU Virtual CPU"):
		g["virtual"] = "kvm"
	}
	if h.sysctl(ctx, "security.jail.jailed") == "1" {
		g["virtual_subtype"] = "jail"
		if g["virtual"] == "physical" {
			g["virtual"] = "virtual"
		}
	}
	return g, nil
}

func freebsdVirtual(g map[string]any, maker, product string) {
	switch {
	case strings.HasPrefix(maker, "Amazon EC2"):
		g["virtual"] = "Nitro"
	case strings.HasPrefix(maker, "Bochs"):
		g["virtual"] = "kvm"
	case strings.HasPrefix(maker, "OpenStack"):
		g["virtual"] = "OpenStack"
	case strings.HasPrefix(maker, "Microsoft") && strings.HasPrefix(product, "Virtual"):
		g["virtual"] = "VirtualPC"
	case strings.HasPrefix(maker, "Xen"):
		g["virtual"], g["virtual_subtype"] = "xen", maker+" "+product
	case strings.HasPrefix(product, "VirtualBox"):
		g["virtual"] = "VirtualBox"
	case strings.HasPrefix(product, "VMware"):
		g["virtual"] = "VMware"
	}
}

// macOS returns what sw_vers, sysctl and system_profiler report.
func macOS(ctx context.Context, h *host) (map[string]any, error) {
	release := h.output(ctx, "sw_vers", "-productVersion")
	full := h.output(ctx, "sw_vers", "-productName") + " " + release
	g := map[string]any{
		"os": "MacOS", "os_family": "MacOS", "osfullname": full, "osrelease": release,
		"init": "launchd", "ps": "ps auxwww",
		"osbuild": h.output(ctx, "sw_vers", "-buildVersion"), "osarch": h.uname().machine,
		"manufacturer": "Apple Inc.",
		"num_cpus":     cleanNumber(h.sysctl(ctx, "hw.ncpu")),
		"cpuarch":      h.sysctl(ctx, "hw.machine"),
		"cpu_model":    h.sysctl(ctx, "machdep.cpu.brand_string"),
		"cpu_flags":    nested.Anys(strings.Split(h.sysctl(ctx, "machdep.cpu.features"), " ")),
		"mem_total":    cleanNumber(h.sysctl(ctx, "hw.memsize")) >> 20,
		"swap_total":   swapUsage(h.sysctl(ctx, "vm.swapusage")),
		"productname":  cleaned("productname", h.sysctl(ctx, "hw.model")),
	}
	maps.Copy(g, releaseGrains("MacOS", full, release))
	return g, nil
}

// macProfile runs system_profiler, which takes a second or two, for hardware, graphics and virtualization.
func macProfile(ctx context.Context, h *host) (map[string]any, error) {
	g := map[string]any{}
	for _, line := range lines(h.output(ctx, "system_profiler", "SPHardwareDataType")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Model Name":
			g["model_name"] = cleaned("model_name", value)
		case "Boot ROM Version":
			g["boot_rom_version"] = cleaned("boot_rom_version", value)
		case "SMC Version (system)":
			g["smc_version"] = cleaned("smc_version", value)
		case "Serial Number (system)":
			g["system_serialnumber"] = cleaned("system_serialnumber", value)
		}
	}
	maps.Copy(g, macGraphics(h.output(ctx, "system_profiler", "SPDisplaysDataType")))
	return g, nil
}
