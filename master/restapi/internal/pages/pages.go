// Package pages serves files beside the interface: those of a graphical one, such as SaltGUI. Paths outside of the
// configured directory are never opened, and no directory is listed.
package pages

// Files are files that are served beside the interface: those of a graphical one, such as SaltGUI. Everybody may read
// them.
type Files struct {
	// App is an HTML file. It answers below AppPath, and wherever else somebody asks for text/html by that name, as
	// browsers do.
	App string
	// AppPath is "/app" when it is empty.
	AppPath string
	// Static is a directory of files, served below StaticPath. Links that lead out of it are not followed, directories
	// not listed.
	Static string
	// StaticPath is "/static" when it is empty.
	StaticPath string
	// Favicon is a file for /favicon.ico.
	Favicon string
}
