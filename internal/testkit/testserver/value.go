package testserver

import "strconv"

// Value replaces the names of servers in the texts of a value. A text that is only @HTTP@, @HTTPS@, @ETCD@, @ETCD3@
// or @INFLUXDB@ becomes a number. Collections are changed in place.
func (v *Servers) Value(x any) any {
	switch x := x.(type) {
	case string:
		text := v.Text(x)
		if x == "@HTTP@" || x == "@HTTPS@" || x == "@ETCD@" || x == "@ETCD3@" || x == "@INFLUXDB@" {
			if port, err := strconv.ParseInt(text, 10, 64); err == nil {
				return port
			}
		}
		return text
	case []any:
		for i := range x {
			x[i] = v.Value(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = v.Value(x[k])
		}
	}
	return x
}
