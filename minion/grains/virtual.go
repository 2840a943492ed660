package grains

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
)

// linuxVirtual returns virtual, virtual_subtype, the details of Xen, and ps.
func linuxVirtual(ctx context.Context, h *host) (map[string]any, error) {
	g := map[string]any{}
	for k, v := range h.virtual(ctx) {
		g[k] = v
	}
	kind, _ := g["virtual"].(string)
	if strings.Contains(kind, "xen") {
		h.xenDetails(g)
	}
	switch family, _ := h.distro()["os_family"].(string); {
	case kind == "openvzhn":
		g["ps"] = `ps -fH -p $(grep -l "^envID:[[:space:]]*0\$" ` +
			`/proc/[0-9]*/status | sed -e "s=/proc/\([0-9]*\)/.*=\1=")  ` +
			`| awk '{ $7=""; print }'`
	case family == "NILinuxRT":
		g["ps"] = "ps -o user,pid,ppid,tty,time,comm"
	default:
		g["ps"] = "ps -efHww"
	}
	return g, nil
}

// virtualData determines the kind of virtual machine (_virtual). It runs programs first; files then correct the
// result.
func (h *host) virtualData(ctx context.Context) map[string]any {
	v := virtualization{h: h, kind: "physical"}
	v.askPrograms(ctx)
	v.chroot()
	v.openVZ()
	v.xen(ctx)
	v.firmware()
	v.container()
	if v.subtype != "" && v.kind == "physical" {
		v.kind = "virtual"
	}
	v.amazon(ctx)
	g := map[string]any{"virtual": v.kind}
	if v.subtype != "" {
		g["virtual_subtype"] = v.subtype
	}
	return g
}

type virtualization struct {
	h             *host
	kind, subtype string
}

// askPrograms runs virt-what if it is installed, else systemd-detect-virt, dmidecode and lspci in turn until
// one returns a result.
func (v *virtualization) askPrograms(ctx context.Context) {
	programs := []string{"systemd-detect-virt", "virt-what", "dmidecode"}
	if v.h.which("virt-what") != "" {
		programs = []string{"virt-what"}
	}
	if enabled(v.h.o.Opts["enable_lspci"]) && v.h.exists("/proc/bus/pci") {
		programs = append(programs, "lspci")
	}
	for _, name := range programs {
		bin := v.h.which(name)
		if bin == "" {
			continue
		}
		out, code, err := v.h.exec(ctx, bin)
		if err != nil || code != 0 {
			continue
		}
		switch name {
		case "systemd-detect-virt":
			if v.fromSystemd(out) {
				return
			}
			continue
		case "virt-what":
			v.fromVirtWhat(out)
		case "dmidecode":
			v.fromDMI(out)
		case "lspci":
			v.fromPCI(out)
		}
		return
	}
}

func (v *virtualization) set(kind, subtype string) {
	v.kind = kind
	if subtype != "" {
		v.subtype = subtype
	}
}

func (v *virtualization) fromSystemd(out string) bool {
	switch out {
	case "qemu", "kvm", "oracle", "xen", "bochs", "chroot", "uml", "systemd-nspawn":
		v.kind = out
		return true
	}
	switch {
	case strings.Contains(out, "vmware"):
		v.kind = "VMware"
	case strings.Contains(out, "microsoft"):
		v.kind = "VirtualPC"
	case strings.Contains(out, "lxc"):
		v.set("container", "LXC")
	case strings.Contains(out, "podman"):
		v.set("container", "Podman")
	case strings.Contains(out, "docker"):
		v.set("container", "Docker")
	case strings.Contains(out, "amazon"):
		v.set("Nitro", "Amazon EC2")
	default:
		return false
	}
	return true
}

func (v *virtualization) fromVirtWhat(out string) {
	for _, line := range lines(out) {
		switch {
		case line == "kvm", line == "qemu", line == "uml", line == "xen":
			v.kind = line
		case strings.Contains(line, "lxc"):
			v.set("container", "LXC")
		case strings.Contains(line, "docker"):
			v.set("container", "Docker")
		case strings.Contains(line, "vmware"):
			v.kind = "VMware"
		case strings.Contains(line, "parallels"):
			v.kind = "Parallels"
		case strings.Contains(line, "hyperv"):
			v.kind = "HyperV"
		case strings.Contains(line, "nutanix"):
			v.set("kvm", "Nutanix AHV")
		case line == "ibm_power-kvm":
			v.kind = "kvm"
		case line == "ibm_power-lpar_shared":
			v.set("LPAR", "shared")
		case line == "ibm_power-lpar_dedicated":
			v.set("LPAR", "dedicated")
		default:
			continue
		}
		return
	}
}

func (v *virtualization) fromDMI(out string) {
	has := func(s string) bool { return strings.Contains(out, s) }
	if containsAny(out, "Vendor: QEMU", "Manufacturer: QEMU", "Vendor: Bochs",
		"Manufacturer: Bochs") {
		v.kind = "kvm"
	}
	switch {
	case has("BHYVE"):
		v.kind = "bhyve"
	case has("Manufacturer: oVirt"):
		v.set("kvm", "ovirt")
	case has("Product Name: RHEV Hypervisor"):
		v.set("kvm", "rhev")
	case has("VirtualBox"):
		v.kind = "VirtualBox"
	case has("VMware"):
		v.kind = "VMware"
	case has(": Microsoft") && has("Virtual Machine"):
		v.kind = "VirtualPC"
	case has("Parallels Software"):
		v.kind = "Parallels"
	case has("Manufacturer: Google"), has("Vendor: SeaBIOS"):
		v.kind = "kvm"
	case has("Manufacturer: Nutanix") && has("Product Name: AHV"):
		v.set("kvm", "Nutanix AHV")
	}
}

func (v *virtualization) fromPCI(out string) {
	model := strings.ToLower(out)
	switch {
	case strings.Contains(model, "vmware"):
		v.kind = "VMware"
	case strings.Contains(model, "virtualbox"):
		v.kind = "VirtualBox"
	case strings.Contains(model, "qemu"), strings.Contains(model, "virtio"):
		v.kind = "kvm"
	}
}

// chroot compares this process's root with that of process 1.
func (v *virtualization) chroot() {
	if !v.h.live {
		return
	}
	ours, err1 := os.Stat("/")
	theirs, err2 := os.Stat("/proc/1/root/.")
	if err1 == nil && err2 == nil && !os.SameFile(ours, theirs) {
		v.subtype = "chroot"
	}
}

func (v *virtualization) openVZ() {
	h := v.h
	if h.isDir("/proc/vz") {
		if h.isFile("/proc/vz/version") {
			v.kind = "openvzhn"
		} else if h.isFile("/proc/vz/veinfo") {
			v.kind = "openvzve"
		}
	}
	status, _ := h.read("/proc/self/status")
	for _, line := range lines(status) {
		if id, ok := strings.CutPrefix(line, "envID:"); ok {
			if n, err := strconv.Atoi(strings.TrimSpace(id)); err == nil && n != 0 {
				v.kind = "openvzve"
			} else if err == nil {
				v.kind = "openvzhn"
			}
		}
	}
}

func (v *virtualization) xen(ctx context.Context) {
	h := v.h
	if !h.isDir("/proc/sys/xen") && !h.isDir("/sys/bus/xen") && !h.isDir("/proc/xen") {
		return
	}
	product, _ := h.hardware(ctx)["productname"].(string)
	capabilities, err := h.read("/proc/xen/capabilities")
	switch {
	case h.isFile("/proc/xen/xsd_kva"):
		v.subtype = "Xen Dom0"
	case product == "HVM domU":
		v.subtype = "Xen HVM DomU"
	case err == nil && h.isFile("/proc/xen/capabilities"):
		v.subtype = "Xen PV DomU"
		if strings.Contains(capabilities, "control_d") {
			v.subtype = "Xen Dom0"
		}
	case h.isDir("/sys/bus/xen/drivers/xenconsole"):
		v.subtype = "Xen PV DomU"
	case h.isDir("/sys/bus/xen") &&
		strings.Contains(strings.ToLower(h.output(ctx, "dmesg")), "xen:"):
		v.subtype = "Xen PV DomU"
	}
	if strings.Contains(strings.ToLower(v.subtype), "dom") {
		v.kind = "xen"
	}
}

func (v *virtualization) firmware() {
	if cpus, _ := v.h.read("/proc/cpuinfo"); strings.Contains(cpus, "QEMU Virtual CPU") {
		v.kind = "kvm"
	}
	product, err := v.h.read("/sys/devices/virtual/dmi/id/product_name")
	if err != nil {
		return
	}
	switch {
	case strings.Contains(product, "VirtualBox"):
		v.kind = "VirtualBox"
	case strings.Contains(product, "RHEV Hypervisor"):
		v.set("kvm", "rhev")
	case strings.Contains(product, "oVirt Node"):
		v.set("kvm", "ovirt")
	case strings.Contains(product, "Google"):
		v.kind = "gce"
	case strings.Contains(product, "BHYVE"):
		v.kind = "bhyve"
	}
}

// container must run last, because containers may run inside virtual machines.
func (v *virtualization) container() {
	groups, err := v.h.read("/proc/1/cgroup")
	switch {
	case err != nil:
	case strings.Contains(groups, ":/lxc/"):
		v.set("container", "LXC")
	case strings.Contains(groups, ":/kubepods/"):
		v.subtype = "kubernetes"
	case strings.Contains(groups, ":/libpod_parent/"):
		v.subtype = "libpod"
	case containsAny(groups, ":/system.slice/docker", ":/docker/", ":/docker-ce/"):
		v.set("container", "Docker")
	}
	if v.subtype != "LXC" {
		if env, err := v.h.read("/proc/1/environ"); err == nil &&
			strings.Contains(env, "container=lxc") {
			v.set("container", "LXC")
		}
	}
}

// amazon recognises EC2 machines by their firmware.
func (v *virtualization) amazon(ctx context.Context) {
	switch v.kind {
	case "qemu", "kvm", "xen", "amazon":
	default:
		return
	}
	out := v.h.output(ctx, "dmidecode", "-t", "system")
	if strings.Contains(out, "Manufacturer: Amazon EC2") {
		if v.kind != "xen" {
			v.kind = "Nitro"
		}
		v.subtype = "Amazon EC2"
		if i := strings.LastIndex(out, "Product Name: "); i >= 0 {
			product, _, _ := strings.Cut(out[i+len("Product Name: "):], "\n")
			v.subtype = "Amazon EC2 (" + strings.TrimSuffix(product, "\r") + ")"
		}
		return
	}
	for _, line := range lines(out) {
		if _, version, ok := strings.Cut(line, "Version: "); ok &&
			strings.Index(version, ".amazon") > 0 {
			v.subtype = "Amazon EC2"
		}
	}
}

// xenDetails adds virtual_hv_version, virtual_hv_version_info, virtual_hv_features and
// virtual_hv_features_list.
func (h *host) xenDetails(g map[string]any) {
	var version [3]string
	for i, name := range []string{"major", "minor", "extra"} {
		text, err := h.read("/sys/hypervisor/version/" + name)
		if err != nil {
			break
		}
		if version[i] = strings.TrimSpace(text); i == 2 {
			g["virtual_hv_version"] = version[0] + "." + version[1] + version[2]
			g["virtual_hv_version_info"] = nested.Anys(version[:])
		}
	}
	text, err := h.read("/sys/hypervisor/properties/features")
	if err != nil {
		return
	}
	text = strings.TrimSpace(text)
	bits, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(text), "0x"), 16, 64)
	if err != nil {
		return
	}
	features := []any{}
	for bit, name := range []string{
		"writable_page_tables", "writable_descriptor_tables", "auto_translated_physmap",
		"supervisor_mode_kernel", "pae_pgdir_above_4gb",
		"mmu_pt_update_preserve_ad", "", "gnttab_map_avail_bits", "hvm_callback_vector",
		"hvm_safe_pvclock", "hvm_pirqs", "dom0",
		"grant_map_identity", "memory_op_vnode_supported", "ARM_SMCCC_supported",
	} {
		if name != "" && bits&(1<<bit) != 0 {
			features = append(features, name)
		}
	}
	g["virtual_hv_features"], g["virtual_hv_features_list"] = text, features
}
