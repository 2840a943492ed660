package grains

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// fqdnsByDefault is the default of the option enable_fqdns_grains on this platform.
const fqdnsByDefault = false

func platformSources() []source {
	return []source{
		{name: "core.os_data", gather: windowsOS},
		{name: "core.machine", gather: windowsMachine},
		{name: "core.memory", gather: windowsMemory},
	}
}

func hostsPath(h *host) string {
	return filepath.Join(h.getenv("SystemRoot"), "System32", "drivers", "etc", "hosts")
}

// platformDisks returns nothing, because only PowerShell can determine the kind of a disk.
func platformDisks(context.Context, *host) (map[string]any, error) { return nil, nil }

// uname returns the values of Python's platform.uname.
func uname() unameInfo {
	name, err := os.Hostname()
	if err != nil {
		name = ""
	}
	v := windows.RtlGetVersion()
	machine := strings.ToUpper(runtime.GOARCH)
	if runtime.GOARCH == "386" {
		machine = "x86"
	}
	version := fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
	return unameInfo{sysname: "Windows", nodename: name, release: version, version: version,
		machine: machine}
}

// registryText returns a function that reads values of a key below HKEY_LOCAL_MACHINE.
func registryText(path string) func(name string) string {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE)
	if err != nil {
		return func(string) string { return "" }
	}
	return func(name string) string {
		s, _, err := key.GetStringValue(name)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(s)
	}
}

// windowsOS returns the names of the system. The registry calls Windows 11 "Windows 10"; the build number
// distinguishes them.
func windowsOS(_ context.Context, h *host) (map[string]any, error) {
	v := windows.RtlGetVersion()
	name := registryText(`SOFTWARE\Microsoft\Windows NT\CurrentVersion`)("ProductName")
	if v.BuildNumber >= 22000 && v.ProductType == 1 {
		name = strings.Replace(name, "Windows 10", "Windows 11", 1)
	}
	full := "Microsoft " + name
	release := windowsRelease(full)
	g := map[string]any{
		"os": "Windows", "os_family": "Windows", "osfullname": full, "osrelease": release,
		"osversion":      h.uname().version,
		"osmanufacturer": "Microsoft Corporation", "osservicepack": nil, "osfinger": "Windows-" +
			release, "init": "Windows",
		"ps": "tasklist.exe", "osrelease_info": windowsReleaseInfo(release),
	}
	if v.ServicePackMajor > 0 {
		g["osservicepack"] = fmt.Sprintf("SP%d", v.ServicePackMajor)
	}
	return g, nil
}

// windowsMachine returns processors, firmware, and the kind of virtual machine.
func windowsMachine(_ context.Context, h *host) (map[string]any, error) {
	bios := registryText(`HARDWARE\DESCRIPTION\System\BIOS`)
	maker, product := bios("SystemManufacturer"), bios("SystemProductName")
	g := map[string]any{
		"num_cpus":        int64(runtime.NumCPU()),
		"cpu_model":       registryText(`HARDWARE\DESCRIPTION\System\CentralProcessor\0`)("ProcessorNameString"),
		"manufacturer":    cleaned("manufacturer", maker),
		"productname":     cleaned("productname", product),
		"biosversion":     cleaned("biosversion", bios("BIOSVersion")),
		"biosvendor":      cleaned("biosvendor", bios("BIOSVendor")),
		"biosreleasedate": cleaned("biosreleasedate", bios("BIOSReleaseDate")),
		"motherboard": map[string]any{"productname": cleaned("productname",
			bios("BaseBoardProduct")), "serialnumber": nil},
		"virtual": windowsVirtual(maker, product),
		"osarch":  h.uname().machine,
	}
	return g, nil
}

// windowsMemory returns mem_total in MiB.
func windowsMemory(context.Context, *host) (map[string]any, error) {
	var status struct {
		length, load                                                              uint32
		totalPhys, availPhys, totalPage, availPage, totalVirtual, availVirtual, x uint64
	}
	status.length = uint32(unsafe.Sizeof(status))
	call := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")
	if ok, _, err := call.Call(uintptr(unsafe.Pointer(&status))); ok == 0 {
		return map[string]any{"mem_total": int64(0)},
			fmt.Errorf("cannot ask for the size of the memory: %w", err)
	}
	return map[string]any{"mem_total": int64(status.totalPhys >> 20)}, nil
}

// windowsVirtual returns the kind of virtual machine by maker and product.
func windowsVirtual(maker, product string) string {
	switch {
	case containsAny(maker, "QEMU", "Bochs"),
		containsAny(product, "oVirt", "RHEV Hypervisor", "CloudStack KVM Hypervisor"):
		return "kvm"
	case strings.Contains(maker, "Xen"):
		return "Xen"
	case strings.Contains(maker, "Amazon EC2"):
		return "EC2"
	case strings.Contains(product, "VirtualBox"):
		return "VirtualBox"
	case strings.Contains(product, "VMware"):
		return "VMware"
	case strings.Contains(maker, "Microsoft") && strings.Contains(product, "Virtual Machine"):
		return "HyperV"
	case strings.Contains(product, "OpenStack"):
		return "OpenStack"
	case strings.Contains(maker, "Parallels"):
		return "Parallels"
	}
	return "physical"
}
