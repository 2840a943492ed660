package output

// colors are the escape sequences of salt.utils.color.get_colors. They are empty without colour.
type colors struct {
	darkGray, red, lightRed, green, lightGreen, yellow, lightYellow, blue, lightBlue, magenta, lightMagenta, cyan, lightGray,
	white, end string
}

func palette(o Options) colors {
	if !o.Color {
		return colors{}
	}
	c := func(name, code string) string {
		if t, ok := o.Theme[name]; ok {
			code = t
		}
		return "\x1b[" + code + "m"
	}
	return colors{darkGray: c("DARK_GRAY", "0;1;30"), red: c("RED", "0;31"), lightRed: c("LIGHT_RED", "0;1;31"),
		green: c("GREEN", "0;32"), lightGreen: c("LIGHT_GREEN", "0;1;32"), yellow: c("YELLOW", "0;33"),
		lightYellow: c("LIGHT_YELLOW", "0;1;33"), blue: c("BLUE", "0;34"), lightBlue: c("LIGHT_BLUE", "0;1;34"),
		magenta: c("MAGENTA", "0;35"), lightMagenta: c("LIGHT_MAGENTA", "0;1;35"), cyan: c("CYAN", "0;36"),
		lightGray: c("LIGHT_GRAY", "0;37"), white: c("WHITE", "0;1;37"), end: c("ENDC", "0;0")}
}
