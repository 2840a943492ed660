// Package localemod is Salt's execution module "locale". Salt's sources: salt/modules/localemod.py, salt/utils/locales.py.
package localemod

import (
	"context"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(*modules.Env) (bool, string) {
	return runtime.GOOS != "windows", "Cannot load locale module: windows platforms are unsupported"
}

func family(c *modules.Call, name string) bool {
	s, _ := c.Grain("os_family").(string)
	return strings.Contains(s, name)
}

// viaLocalectl reports whether systemd keeps the locale. SLE 12 has localectl, but rewrites what it sets.
func viaLocalectl(c *modules.Call) bool {
	_, err := os.Stat(c.Path("/run/systemd/system"))
	return err == nil && (c.Grain("os_family") != "Suse" || c.Grain("osmajorrelease") != int64(12))
}

// setting is one variable of the system's locale.
type setting struct{ name, value string }

// localectl reads the settings of the system's locale.
func localectl(ctx context.Context, c *modules.Call) (settings []setting, found bool, err error) {
	if c.Which("localectl") == "" {
		return nil, false, modules.Errorf(`Unable to find "localectl"`)
	}
	r, err := c.Cmd(ctx, modules.Command{Args: []string{"localectl"}})
	if err != nil {
		return nil, false, err
	}
	if strings.Contains(string(r.Stderr), "Failed to connect to bus: No such file or directory") {
		return nil, false, modules.Errorf(`Command "localectl" is in a degraded state.`)
	}
	out, err := saltcmd.Text(ctx, c, "localectl", "status")
	if err != nil {
		return nil, false, err
	}
	key, any := "", false
	for _, line := range pytext.SplitLines(pytext.Strip(out), false) {
		data := pytext.Strip(line)
		if parts := strings.Split(line, ": "); len(parts) > 2 {
			return nil, false, &modules.PythonError{Type: "ValueError", Msg: "too many values to unpack (expected 2)"}
		} else if len(parts) == 2 {
			key, data = strings.ReplaceAll(strings.ToLower(pytext.Strip(parts[0])), " ", "_"), parts[1]
		}
		if data == "" || key == "" {
			continue
		}
		words := strings.Split(data, "=")
		any = any || len(words) <= 2
		if key == "system_locale" && len(words) == 2 {
			settings, found = append(settings, setting{words[0], words[1]}), true
		}
	}
	if !any {
		return nil, false, modules.Errorf(`Unable to parse result of "localectl"`)
	}
	return settings, found, nil
}

func getLocale(ctx context.Context, c *modules.Call) (any, error) {
	if viaLocalectl(c) {
		list, ok, err := localectl(ctx, c)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: "'system_locale'"}
		}
		for _, s := range slices.Backward(list) {
			if s.name == "LANG" {
				return s.value, nil
			}
		}
		return "", nil
	}
	var pattern, file string
	switch {
	case family(c, "Suse"):
		pattern, file = "^RC_LANG", "/etc/sysconfig/language"
	case family(c, "RedHat"):
		pattern, file = "^LANG=", "/etc/sysconfig/i18n"
	case family(c, "Debian"):
		pattern, file = "^LANG=", "/etc/default/locale"
	case family(c, "Gentoo"):
		out, err := saltcmd.Text(ctx, c, "eselect", "--brief", "locale", "show")
		return pytext.Strip(out), err
	default:
		return nil, modules.Errorf(`Error: "%s" is unsupported!`, pytext.Str(c.Grain("oscodename")))
	}
	out, err := saltcmd.Text(ctx, c, "grep", pattern, file)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(out, "=")
	if len(parts) < 2 {
		c.Logger().Error("There is no locale in the file", "file", file)
		return "", nil
	}
	return strings.ReplaceAll(parts[1], `"`, ""), nil
}

func setLocale(ctx context.Context, c *modules.Call) (any, error) {
	locale := c.Str("locale")
	switch {
	case viaLocalectl(c):
		return viaSystemd(ctx, c, locale)
	case family(c, "Suse"):
		return put(ctx, c, "/etc/sysconfig/language", "RC_LANG", `"`+locale+`"`)
	case family(c, "RedHat"):
		return put(ctx, c, "/etc/sysconfig/i18n", "LANG", `"`+locale+`"`)
	case family(c, "Debian"):
		path := c.Which("update-locale")
		if path == "" {
			return nil, modules.Errorf(`Cannot set locale: "update-locale" was not found.`)
		}
		if _, err := saltcmd.Text(ctx, c, path); err != nil { // makes the file
			return nil, err
		}
		return replace(ctx, c, "/etc/default/locale", "^LANG=.*", `LANG="`+locale+`"`)
	case family(c, "Gentoo"):
		code, err := saltcmd.Retcode(ctx, c, "eselect", "--brief", "locale", "set", locale)
		return err == nil && code == 0, err
	}
	return nil, modules.Errorf("Error: Unsupported platform!")
}

// viaSystemd sets LANG beside the other settings; where localectl cannot, the file it keeps them in is written.
func viaSystemd(ctx context.Context, c *modules.Call, locale string) (any, error) {
	list, _, err := localectl(ctx, c)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(list, func(s setting) bool { return s.name == "LANG" }); i >= 0 {
		list[i].value = locale
	} else {
		list = append(list, setting{"LANG", locale})
	}
	cmd := []any{"localectl", "set-locale"}
	for _, s := range list {
		cmd = append(cmd, s.name+"="+s.value)
	}
	code, err := saltcmd.Retcode(ctx, c, cmd...)
	if err != nil || code == 0 {
		return err == nil, err
	}
	return put(ctx, c, "/etc/locale.conf", "LANG", locale)
}

// put sets a variable in a file. It creates the file if that is missing.
func put(ctx context.Context, c *modules.Call, file, name, value string) (any, error) {
	if _, err := os.Stat(c.Path(file)); err != nil {
		if _, err := c.Exec(ctx, "file.touch", file); err != nil {
			return nil, err
		}
	}
	return replace(ctx, c, file, "^"+name+"=.*", name+"="+value)
}

func replace(ctx context.Context, c *modules.Call, file, pattern, text string) (any, error) {
	_, err := c.ExecKw(ctx, "file.replace", []any{file, pattern, text}, map[string]any{"append_if_not_found": true})
	return err == nil, err
}

func listAvail(ctx context.Context, c *modules.Call) (any, error) {
	list, err := locales(ctx, c)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out, nil
}

func locales(ctx context.Context, c *modules.Call) ([]string, error) {
	out, err := saltcmd.Text(ctx, c, "locale", "-a")
	return strings.Split(out, "\n"), err
}

func avail(ctx context.Context, c *modules.Call) (any, error) {
	want, err := modules.Text(c.Value("locale"), "split")
	if err != nil {
		return nil, err
	}
	list, err := locales(ctx, c)
	return slices.ContainsFunc(list, func(s string) bool {
		return split(pytext.Strip(s)).normal() == split(want).normal()
	}), err
}

// parts are the parts of a locale's name: language_territory.codeset@modifier charmap.
type parts struct{ language, territory, codeset, modifier, charmap string }

func split(s string) (p parts) {
	s, p.charmap, _ = strings.Cut(s, " ")
	s, p.modifier, _ = strings.Cut(s, "@")
	s, p.codeset, _ = strings.Cut(s, ".")
	p.language, p.territory, _ = strings.Cut(s, "_")
	return p
}

func (p parts) String() string {
	s := p.language
	for _, x := range [...]struct{ mark, text string }{{"_", p.territory}, {".", p.codeset}, {"@", p.modifier}, {" ", p.charmap}} {
		if x.text != "" {
			s += x.mark + x.text
		}
	}
	return s
}

// normal returns the locale's name in the spelling of locale -a, without the character map.
func (p parts) normal() string {
	p.territory, p.codeset, p.charmap = strings.ToUpper(p.territory), strings.ReplaceAll(strings.ToLower(p.codeset), "-", ""), ""
	return p.String()
}

func genLocale(ctx context.Context, c *modules.Call) (any, error) {
	locale, err := modules.Text(c.Value("locale"), "split")
	if err != nil {
		return nil, err
	}
	ubuntu := c.Grain("os") == "Ubuntu"
	p := split(locale)
	if p.charmap == "" && !ubuntu {
		p.charmap = p.codeset
		locale = p.String()
	}
	valid, err := exists(c, locale, p)
	if err != nil || !valid {
		return false, err
	}
	if _, err := os.Stat(c.Path("/etc/locale.gen")); err == nil {
		if _, err := replace(ctx, c, "/etc/locale.gen", `^\s*#\s*`+locale+`\s*$`, locale+"\n"); err != nil {
			return nil, err
		}
	} else if ubuntu {
		file := "/var/lib/locales/supported.d/" + p.language
		if _, err := c.Exec(ctx, "file.touch", file); err != nil {
			return nil, err
		}
		if _, err := replace(ctx, c, file, locale, locale); err != nil {
			return nil, err
		}
	}
	cmd, err := generator(c, locale, p)
	if err != nil {
		return nil, err
	}
	r, err := saltcmd.All(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(c.Keywords["verbose"]) {
		return r.Map(), nil
	}
	return r.Retcode == 0, nil
}

// exists reports whether the host has the sources of a locale.
func exists(c *modules.Call, locale string, p parts) (bool, error) {
	if c.Grain("os") == "Debian" || c.Grain("os_family") == "Gentoo" {
		source, err := os.ReadFile(c.Path("/usr/share/i18n/SUPPORTED"))
		if err != nil {
			return false, modules.Usagef("File path '/usr/share/i18n/SUPPORTED' does not exist")
		}
		expr, err := regexp.Compile("(?m)^" + locale + "$")
		if err != nil {
			return false, modules.Usagef("Invalid regular expression: %s", err)
		}
		return expr.Match(source), nil
	}
	dir := "/usr/share/i18n/locales"
	if c.Grain("os_family") == "Suse" {
		dir = "/usr/share/locale"
	}
	entries, err := os.ReadDir(c.Path(dir))
	if err != nil {
		return false, modules.Errorf(`Locale "%s" is not available.`, locale)
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == p.language+"_"+p.territory }), nil
}

func generator(c *modules.Call, locale string, p parts) ([]any, error) {
	name := p.language + "_" + p.territory
	switch {
	case c.Which("locale-gen") != "" && c.Grain("os") == "Ubuntu":
		return []any{"locale-gen", split(locale).normal()}, nil
	case c.Which("locale-gen") != "" && c.Grain("os_family") == "Gentoo":
		return []any{"locale-gen", "--generate", locale}, nil
	case c.Which("locale-gen") != "":
		return []any{"locale-gen", locale}, nil
	case c.Which("localedef") != "":
		noise := "--quiet"
		if pytext.Truth(c.Keywords["verbose"]) {
			noise = "--verbose"
		}
		return []any{"localedef", "--force", "-i", name, "-f", p.codeset, name + "." + p.codeset, noise}, nil
	}
	return nil, modules.Errorf(`Command "locale-gen" or "localedef" was not found on this system.`)
}
