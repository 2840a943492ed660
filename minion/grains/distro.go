package grains

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/brine-salt/brine/internal/lazyre"
)

// osRelease parses os-release and adds the defaults of its specification. The second result is false if the
// file is missing.
func (h *host) osRelease() (map[string]string, bool) {
	info := map[string]string{"NAME": "Linux", "ID": "linux", "PRETTY_NAME": "Linux"}
	for _, name := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		text, err := h.read(name)
		if err != nil {
			continue
		}
		for _, line := range lines(text) {
			if key, value, ok := shellAssignment(line); ok {
				info[key] = value
			}
		}
		return info, true
	}
	return info, false
}

// shellAssignment parses KEY=value, KEY="value" or KEY='value' like Python's platform.freedesktop_os_release.
func shellAssignment(line string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(line, "=")
	if !ok || key == "" {
		return "", "", false
	}
	for _, r := range key {
		if r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)) {
			return "", "", false
		}
	}
	value = strings.TrimRight(value, " \t")
	if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		value = value[1 : len(value)-1]
	}
	if !strings.Contains(value, `\`) {
		return key, value, true
	}
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' && i+1 < len(value) && strings.IndexByte("\\$\"'`", value[i+1]) >= 0 {
			i++
		}
		b.WriteByte(value[i])
	}
	return key, b.String(), true
}

// linuxDistribution returns os, os_family, oscodename, osfullname, osrelease and lsb_distrib_*. It follows
// Salt's "legacy" code path, because Salt's onedir packages do not contain the module lsb_release
// (_linux_distribution_data, _legacy_linux_distribution_data).
func (h *host) linuxDistribution() map[string]any {
	g := h.lsbRelease()
	info, found := h.osRelease()
	if found {
		for k, v := range osReleaseGrains(info) {
			g[k] = v
		}
	} else {
		info = nil
	}
	delete(g, "osrelease")
	d := &distribution{h: h, info: info, g: g}
	d.legacy()
	out := make(map[string]any, len(g))
	for k, v := range g {
		out[k] = v
	}
	return out
}

// lsbRelease parses /etc/lsb-release.
func (h *host) lsbRelease() map[string]string {
	g := map[string]string{}
	text, err := h.read("/etc/lsb-release")
	if err != nil {
		return g
	}
	for _, line := range lines(text) {
		key, value, ok := strings.Cut(line, "=")
		switch key {
		case "DISTRIB_ID", "DISTRIB_RELEASE", "DISTRIB_CODENAME", "DISTRIB_DESCRIPTION":
		default:
			continue
		}
		if ok && value != "" && (value[0] == '"' || value[0] == '\'') {
			value = value[1:]
		}
		// The value ends at the first character other than a letter, digit, space or one of ".-_".
		end := strings.IndexFunc(value, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsSpace(r) &&
				!strings.ContainsRune(".-_", r)
		})
		if end >= 0 {
			value = value[:end]
		}
		if ok && value != "" {
			g["lsb_"+strings.ToLower(key)] = strings.TrimRightFunc(value, unicode.IsSpace)
		}
	}
	return g
}

// osReleaseGrains implements _os_release_to_grains.
func osReleaseGrains(info map[string]string) map[string]string {
	g := map[string]string{
		"os":         deriveOS(info["NAME"], info["ID"]),
		"os_family":  prettyFamily(familyID(info["ID"], info["ID_LIKE"])),
		"oscodename": info["VERSION_CODENAME"],
		"osfullname": strings.TrimSpace(info["NAME"]),
		"osrelease":  info["VERSION_ID"],
	}
	if g["oscodename"] == "" {
		switch info["ID"] {
		case "astra":
			g["oscodename"] = info["VARIANT_ID"]
		case "almalinux", "rocky":
			if m := regexp.MustCompile(`^\d[\d.+\-a-z]* \((.+)\)`).FindStringSubmatch(info["VERSION"]); m != nil {
				g["oscodename"] = m[1]
			}
		}
	}
	for k, v := range g {
		if v == "" {
			delete(g, k)
		}
	}
	return g
}

// deriveOS returns the traditional short form of the full name (_derive_os_grain).
func deriveOS(name, id string) string {
	switch id + "\x00" + name {
	case "astra\x00Astra Linux (Orel)":
		return "AstraLinuxCE"
	case "astra\x00Astra Linux (Smolensk)":
		return "AstraLinuxSE"
	case "pop\x00Pop!_OS":
		return "Pop"
	}
	short := strings.TrimSpace(linuxSuffix.Get().ReplaceAllString(name, ""))
	key := []rune(strings.ToLower(strings.ReplaceAll(short, " ", "")))
	if len(key) > 10 {
		key = key[:10]
	}
	if os := osName(string(key)); os != "" {
		return os
	}
	return short
}

var linuxSuffix = lazyre.Regexp{Expr: `(?i)[^\pL\pN_](?:gnu/)?linux`}

// familyID returns the oldest ancestor in ID_LIKE.
func familyID(id, like string) string {
	if like == "" {
		return id
	}
	ids := append([]string{id}, strings.Fields(like)...)
	for _, x := range ids {
		if x == "debian" || x == "ubuntu" {
			return "debian"
		}
	}
	return ids[len(ids)-1]
}

func prettyFamily(id string) string {
	if id == "fedora" {
		return "RedHat"
	}
	if id == "" {
		return ""
	}
	return strings.ToUpper(id[:1]) + strings.ToLower(id[1:])
}

// distribution is the state of the legacy code path.
type distribution struct {
	h    *host
	info map[string]string // nil without os-release
	g    map[string]string
}

func (d *distribution) legacy() {
	g := d.g
	if strings.HasPrefix(strings.ToLower(g["lsb_distrib_description"]), "antergos") {
		g["osfullname"] = "Antergos Linux"
	} else if _, ok := g["lsb_distrib_id"]; !ok {
		d.withoutLSB()
	}
	name, release, codename := d.detected()
	if _, ok := g["osfullname"]; !ok {
		switch id, ok := g["lsb_distrib_id"]; {
		case strings.HasPrefix(strings.ToLower(id), "nilrt"):
			g["osfullname"] = "nilrt"
		case ok:
			g["osfullname"] = strings.TrimSpace(id)
		default:
			g["osfullname"] = strings.TrimSpace(name)
		}
	}
	if _, ok := g["osrelease"]; !ok {
		// CentOS 7 and 8 leave the minor release out of os-release.
		if c := g["lsb_distrib_codename"]; strings.Contains(c, "CentOS Linux 7") ||
			strings.Contains(c, "CentOS Linux 8") {
			delete(g, "lsb_distrib_release")
		}
		if r, ok := g["lsb_distrib_release"]; ok {
			release = r
		}
		g["osrelease"] = strings.TrimSpace(release)
	}
	d.codename(codename)
	if _, ok := g["os"]; !ok {
		g["os"] = deriveOS(g["osfullname"], "")
	}
	g["os_family"] = g["os"]
	if family := osFamily(g["os"]); family != "" {
		g["os_family"] = family
	}
}

func (d *distribution) codename(detected string) {
	g := d.g
	if c := g["lsb_distrib_codename"]; c != "" &&
		containsAny(g["os"], "Rocky", "AlmaLinux", "AstraLinuxSE") {
		if _, rest, ok := strings.Cut(c, "("); ok {
			inner, _, _ := strings.Cut(rest, ")")
			if words := strings.Fields(inner); g["os"] == "AstraLinuxSE" && len(words) > 0 {
				inner = strings.ToLower(words[0])
			}
			g["lsb_distrib_codename"] = inner
		}
	}
	g["oscodename"] = strings.TrimSpace(g["lsb_distrib_codename"])
	if g["oscodename"] == "" || strings.Contains(g["oscodename"], "Red Hat") {
		g["oscodename"] = detected
	}
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// withoutLSB fills lsb_distrib_* from the release file that the distribution has.
func (d *distribution) withoutLSB() {
	switch h := d.h; {
	case d.info != nil:
		d.lsbFromOSRelease()
	case h.isFile("/etc/SuSE-release"):
		d.suse()
	case h.isFile("/etc/altlinux-release"):
		d.g["lsb_distrib_id"] = "altlinux"
		text, _ := h.read("/etc/altlinux-release")
		for _, line := range lines(text) {
			if f := strings.Fields(line); len(f) > 3 && f[0] == "ALT" {
				d.g["lsb_distrib_release"] = f[2]
				d.g["lsb_distrib_codename"] = strings.NewReplacer("(", "", ")", "").Replace(f[3])
			}
		}
	case h.isFile("/etc/centos-release"):
		d.g["lsb_distrib_id"] = "CentOS"
		text, _ := h.read("/etc/centos-release")
		for _, line := range lines(text) {
			if r := regexp.MustCompile(`\d+\.\d+`).FindString(line); r != "" {
				d.g["lsb_distrib_release"] = r
			}
			if _, rest, ok := strings.Cut(line, "("); ok {
				if inner, _, ok := strings.Cut(rest, ")"); ok {
					d.g["lsb_distrib_codename"] = inner
				}
			}
		}
	case h.isFile("/etc.defaults/VERSION") && h.isFile("/etc.defaults/synoinfo.conf"):
		d.synology()
	}
}

func (d *distribution) lsbFromOSRelease() {
	g, info := d.g, d.info
	g["lsb_distrib_id"] = strings.TrimSpace(info["NAME"])
	if v, ok := info["VERSION_ID"]; ok {
		g["lsb_distrib_release"] = v
	}
	g["lsb_distrib_codename"] = info["PRETTY_NAME"]
	if v, ok := info["VERSION_CODENAME"]; ok {
		g["lsb_distrib_codename"] = v
	}
	if cpe, ok := info["CPE_NAME"]; ok {
		vendor, version := parseCPE(cpe)
		if v := strings.ToLower(vendor); v == "suse" || v == "opensuse" {
			g["os"] = "SUSE"
			if info["NAME"] == "openSUSE Leap" {
				g["osfullname"] = "Leap"
			} else if info["VERSION"] == "Tumbleweed" {
				g["osfullname"] = "Tumbleweed"
			}
			if version != "" && vendor == "opensuse" {
				g["lsb_distrib_release"] = version
			}
		}
	}
	if f := strings.Fields(info["PRETTY_NAME"]); strings.TrimSpace(info["ID"]) == "mendel" &&
		len(f) >= 3 {
		g["lsb_distrib_release"] = f[2]
	}
}

// parseCPE returns vendor and version of a CPE name in either notation (_parse_cpe_name).
func parseCPE(name string) (vendor, version string) {
	f := strings.Split(name, ":")
	star := func(s string) string {
		if s == "*" {
			return ""
		}
		return s
	}
	switch {
	case len(f) <= 4 || f[0] != "cpe":
		return "", ""
	case strings.HasPrefix(f[1], "/"):
		return f[2], f[4]
	case f[1] == "2.3" && (len(f) == 6 || len(f) > 7 && len(f) <= 13):
		return star(f[3]), star(f[5])
	}
	return "", ""
}

func (d *distribution) suse() {
	g := d.g
	g["lsb_distrib_id"] = "SUSE"
	text, _ := d.h.read("/etc/SuSE-release")
	digits := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, s)
	}
	version, patch := "", ""
	for _, line := range lines(text) {
		switch l := strings.ToLower(line); {
		case strings.Contains(l, "enterprise"):
			g["lsb_distrib_id"] = "SLES"
			g["lsb_distrib_codename"] = strings.TrimSpace(regexp.MustCompile(`\(.+\)`).ReplaceAllString(line, ""))
		case strings.Contains(l, "version"):
			version = digits(line)
		case strings.Contains(l, "patchlevel"):
			patch = digits(line)
		}
	}
	g["lsb_distrib_release"] = version
	if patch != "" {
		g["lsb_distrib_release"] += "." + patch
		if c := g["lsb_distrib_codename"]; c != "" && !strings.Contains(c, "SP"+patch) {
			g["lsb_distrib_codename"] = c + " SP" + patch
		}
	}
	if g["lsb_distrib_codename"] == "" {
		g["lsb_distrib_codename"] = "n.a"
	}
}

func (d *distribution) synology() {
	d.g["osfullname"] = "Synology"
	text, _ := d.h.read("/etc.defaults/VERSION")
	found := map[string]string{}
	for _, line := range lines(text) {
		if k, v, ok := strings.Cut(line, "="); ok && !strings.Contains(v, "=") {
			found[k] = strings.Trim(v, `"`)
		}
	}
	major, ok1 := found["majorversion"]
	minor, ok2 := found["minorversion"]
	build, ok3 := found["buildnumber"]
	if ok1 && ok2 && ok3 {
		d.g["osrelease"] = major + "." + minor + "-" + build
	}
}
