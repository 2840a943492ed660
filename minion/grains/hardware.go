package grains

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// hardwareData returns biosversion, biosvendor, boardname, productname, manufacturer, biosreleasedate, uuid and
// serialnumber, as far as the machine reports them (_hw_data).
func (h *host) hardwareData(ctx context.Context) map[string]any {
	switch {
	case h.exists("/sys/class/dmi/id"):
		return h.dmiFiles()
	case h.which("dmidecode") != "" || h.which("smbios") != "":
		return h.dmidecode(ctx)
	case h.which("fw_printenv") != "":
		return h.uboot(ctx)
	}
	return map[string]any{}
}

func (h *host) dmiFiles() map[string]any {
	g := map[string]any{}
	for _, f := range [][2]string{
		{"biosversion", "bios_version"}, {"biosvendor", "bios_vendor"}, {"boardname", "board_name"},
		{"productname", "product_name"},
		{"manufacturer", "sys_vendor"}, {"biosreleasedate", "bios_date"}, {"uuid", "product_uuid"},
		{"serialnumber", "product_serial"},
	} {
		// Files that only root can read are skipped.
		text, err := h.read("/sys/class/dmi/id/" + f[1])
		if err != nil {
			continue
		}
		text = strings.TrimSpace(text)
		if !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text, "\uFFFD")
		}
		if f[0] == "uuid" {
			text = strings.ToLower(text)
		}
		g[f[0]] = text
	}
	return g
}

// dmidecode runs dmidecode once per string.
func (h *host) dmidecode(ctx context.Context) map[string]any {
	g := map[string]any{}
	for _, f := range [][2]string{
		{"biosversion", "bios-version"}, {"biosvendor", "bios-vendor"},
		{"productname", "system-product-name"},
		{"manufacturer", "system-manufacturer"}, {"biosreleasedate", "bios-release-date"},
		{"uuid", "system-uuid"},
	} {
		if v, ok := h.smbios(ctx, f[1]); ok {
			if f[0] == "uuid" {
				v = strings.ToLower(v)
			}
			g[f[0]] = v
		}
	}
	for _, key := range []string{"system-serial-number", "chassis-serial-number",
		"baseboard-serial-number"} {
		if v, ok := h.smbios(ctx, key); ok {
			g["serialnumber"] = v
			break
		}
	}
	return g
}

// smbios returns one string, and false if it is missing or a well-known placeholder (salt/modules/smbios.py:
// get).
func (h *host) smbios(ctx context.Context, key string) (string, bool) {
	bin := h.which("dmidecode")
	if bin == "" {
		return "", false
	}
	out, code, err := h.exec(ctx, bin, "-s", key)
	if err != nil || code != 0 {
		return "", false
	}
	list := slices.DeleteFunc(lines(strings.TrimSpace(out)),
		func(s string) bool { return strings.HasPrefix(s, "#") })
	v := strings.Join(list, "\n")
	return v, !strings.HasPrefix(v, "/dev/mem") && cleanValue(key, v)
}

// uboot reads the U-Boot environment of ARM boards.
func (h *host) uboot(ctx context.Context) map[string]any {
	g := map[string]any{}
	for _, f := range [][2]string{{"manufacturer", "manufacturer"}, {"serialnumber", "serial#"},
		{"productname", "DeviceDesc"}} {
		out, code, err := h.exec(ctx, h.which("fw_printenv"), f[1])
		if err != nil || code != 0 {
			continue
		}
		g[f[0]] = cleaned(f[0], strings.SplitN(out, "=", 3)[min(1, strings.Count(out, "="))])
	}
	return g
}

// cleaned returns the value, or nil if it is a placeholder.
func cleaned(key, value string) any {
	if cleanValue(key, value) {
		return value
	}
	return nil
}

// cleanValue reports whether a firmware string is more than a placeholder (_clean_value).
func cleanValue(key, value string) bool {
	match := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(value) }
	switch {
	case value == "", match(`(?i)^none`):
		return false
	case strings.Contains(key, "uuid"):
		hex := strings.NewReplacer("urn:", "", "uuid:", "", "{", "", "}", "", "-",
			"").Replace(value)
		return len(hex) == 32 && strings.Trim(strings.ToLower(hex), "0123456789abcdef") == ""
	case containsAny(key, "serial", "part", "version"):
		return !match(`^0+$|^0?1234567`) &&
			!match(`(?i)sernum|part[_-]?number|specified|filled|applicable`)
	case containsAny(key, "asset", "manufacturer"):
		return !match(`(?i)manufacturer|to be filled|available|asset|^no(ne|t)`)
	}
	return !match(`(?i)to be filled|un(known|specified)|no(t|ne)? (asset|provided|defined|available|present|specified)`)
}
