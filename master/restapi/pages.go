package restapi

// Pages are files that are served beside the interface: those of a graphical one, such as SaltGUI. Everybody may read
// them.
type Pages struct {
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
