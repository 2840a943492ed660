package grains

import (
	"regexp"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/lazyre"
)

// detected returns what the Python library "distro" returns for name, version(best=True) and codename, without
// running lsb_release.
func (d *distribution) detected() (name, version, codename string) {
	release := d.releaseFile()
	name = d.info["NAME"]
	if name == "" {
		name = release["name"]
	}
	trim := func(s string) string { return strings.Trim(strings.Trim(s, `"`), "'") }
	return trim(name), trim(d.bestVersion(release)), trim(d.detectedCodename(release))
}

// bestVersion returns the most precise of the candidates.
func (d *distribution) bestVersion(release map[string]string) string {
	candidates := []string{d.info["VERSION_ID"], release["version_id"],
		parseRelease(d.info["PRETTY_NAME"])["version_id"]}
	if d.info["ID"] == "debian" || slices.Contains(strings.Fields(d.info["ID_LIKE"]), "debian") {
		if text, err := d.h.read("/etc/debian_version"); err == nil {
			first, _, _ := strings.Cut(text, "\n")
			candidates = append(candidates, strings.TrimRight(first, " \t\r"))
		}
	}
	best := ""
	for _, v := range candidates {
		if best == "" || strings.Count(v, ".") > strings.Count(best, ".") {
			best = v
		}
	}
	return best
}

func (d *distribution) detectedCodename(release map[string]string) string {
	if v, ok := d.info["VERSION_CODENAME"]; ok {
		return v
	}
	if v, ok := d.info["UBUNTU_CODENAME"]; ok {
		return v
	}
	if v, ok := d.info["VERSION"]; ok {
		if m := regexp.MustCompile(`\(([^\d]+)\)|,\s*([^\d]+)`).FindStringSubmatch(v); m != nil {
			return m[1] + m[2]
		}
	}
	return release["codename"]
}

// releaseFile parses the first line of the first /etc/*-release or *_version file that contains anything.
func (d *distribution) releaseFile() map[string]string {
	for _, name := range d.h.readDir("/etc") {
		if !isReleaseName(name) || !d.h.isFile("/etc/"+name) {
			continue
		}
		text, err := d.h.read("/etc/" + name)
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(text, "\n")
		if info := parseRelease(first); info["name"] != "" {
			return info
		}
	}
	return nil
}

func isReleaseName(name string) bool {
	switch name {
	case "debian_version", "lsb-release", "oem-release", "os-release", "system-release",
		"plesk-release", "iredmail-release",
		"board-release", "ec2_version":
		return false
	}
	for _, suffix := range []string{"-release", "_release", "-version", "_version"} {
		if stem, ok := strings.CutSuffix(name, suffix); ok {
			return stem != "" && !strings.ContainsAny(stem, "-. ")
		}
	}
	return false
}

// releasePattern matches a release line from its end: codename in parentheses, version, name.
var releasePattern = lazyre.Regexp{Expr: `^(?:[^)]*\)(.*)\()? *(?:STL )?([\d.+\-a-z]*\d) *(?:esaeler *)?(.+)`}

// parseRelease parses a line such as "CentOS Linux release 7.9.2009 (Core)".
func parseRelease(line string) map[string]string {
	line = strings.TrimSpace(line)
	m := releasePattern.Get().FindStringSubmatch(reverse(line))
	if m == nil {
		if line == "" {
			return nil
		}
		return map[string]string{"name": line}
	}
	info := map[string]string{"name": reverse(m[3]), "version_id": reverse(m[2])}
	if m[1] != "" {
		info["codename"] = reverse(m[1])
	}
	return info
}

func reverse(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// osName returns the traditional short name for the start of a distribution's name (_OS_NAME_MAP), or "".
func osName(key string) string {
	switch key {
	case "redhatente":
		return "RedHat"
	case "gentoobase":
		return "Gentoo"
	case "archarm":
		return "Arch ARM"
	case "arch":
		return "Arch"
	case "debian":
		return "Debian"
	case "raspbian":
		return "Raspbian"
	case "fedoraremi", "pidora":
		return "Fedora"
	case "chapeau":
		return "Chapeau"
	case "korora":
		return "Korora"
	case "amazonami":
		return "Amazon"
	case "alt":
		return "ALT"
	case "enterprise", "oracleserv":
		return "OEL"
	case "cloudserve", "cloudlinux":
		return "CloudLinux"
	case "almalinux", "almalinuxk":
		return "AlmaLinux"
	case "scientific":
		return "ScientificLinux"
	case "synology":
		return "Synology"
	case "nilrt":
		return "NILinuxRT"
	case "poky":
		return "Poky"
	case "manjaro", "manjarolin":
		return "Manjaro"
	case "univention":
		return "Univention"
	case "antergos":
		return "Antergos"
	case "sles":
		return "SUSE"
	case "void":
		return "Void"
	case "slesexpand":
		return "RES"
	case "linuxmint":
		return "Mint"
	case "neon":
		return "KDE neon"
	case "pop":
		return "Pop"
	case "rocky":
		return "Rocky"
	case "alibabaclo":
		return "Alinux"
	case "mendel":
		return "Mendel"
	case "photon":
		return "VMware Photon OS"
	case "virtuozzo":
		return "Virtuozzo"
	}
	return ""
}

// osFamily returns the os_family of the grain os (_OS_FAMILY_MAP), or "" if it is its own family.
func osFamily(os string) string {
	switch os {
	case "Ubuntu", "Mint", "Trisquel", "GCEL", "Linaro", "elementary OS", "elementary",
		"Univention", "Raspbian", "Devuan", "antiX",
		"Kali", "Parrot OS", "neon", "Cumulus", "Deepin", "KDE neon", "IDMS", "TurnKey", "Pop",
		"AstraLinuxCE", "AstraLinuxSE",
		"Mendel", "OSMC":
		return "Debian"
	case "Fedora", "Chapeau", "Korora", "FedBerry", "CentOS", "CentOS Stream", "GoOSe",
		"Scientific", "Amazon", "CloudLinux",
		"AlmaLinux", "OVS", "OEL", "XCP", "XCP-ng", "XenServer", "RES", "Sangoma",
		"VMware Photon OS", "AlterOS", "RED OS", "ALT",
		"ScientificLinux", "Rocky", "Alinux", "Virtuozzo", "AlmaLinux Kitten", "openEuler":
		return "RedHat"
	case "SLES", "SUSE Enterprise Server", "SUSE  Enterprise Server", "SLED", "openSUSE", "SUSE",
		"openSUSE Leap",
		"openSUSE Tumbleweed", "SLES_SAP", "alfaLinux", "alfaLinux Rise":
		return "Suse"
	case "Arch ARM", "Manjaro", "Manjaro ARM", "Antergos", "EndeavourOS":
		return "Arch"
	case "Mandrake":
		return "Mandriva"
	case "VMwareESX":
		return "VMware"
	case "Bluewhite64":
		return "Bluewhite"
	case "Slamd64":
		return "Slackware"
	case "Funtoo":
		return "Gentoo"
	}
	return ""
}
