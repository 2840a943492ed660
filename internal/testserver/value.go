package testserver

// Value puts the servers into the texts of a value. Collections are changed in place.
func (v *Servers) Value(x any) any {
	switch x := x.(type) {
	case string:
		return v.Text(x)
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
