# Asks an HTTP server that a case has, without a program for it, and prints the body of the answer: bash ask.sh METHOD PORT PATH [FORM]
exec 3<>"/dev/tcp/127.0.0.1/$2"
printf '%s %s HTTP/1.0\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s' "$1" "$3" "${#4}" "$4" >&3
sed '1,/^\r$/d' <&3
