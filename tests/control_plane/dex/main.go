// Dex's own server with its storage in memory and its connector for tests: whoever signs on is
// Kilgore Trout of the group authors. Its usual program needs cgo for SQLite, and is larger.
package main

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"net/http"
	"os"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/dexidp/dex/web"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:5556", "address and port")
	issuer := flag.String("issuer", "http://127.0.0.1:5556/dex", "as which it speaks")
	client := flag.String("client", "fumarole", "id of the one client")
	secret := flag.String("secret", "", "its secret")
	screen := flag.Bool("screen", false, "show the page to choose a way to sign on")
	flag.Parse() // the rest are its redirect URIs

	ctx := context.Background()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	kept := memory.New(logger)
	check(kept.CreateClient(ctx, storage.Client{
		ID: *client, Secret: *secret, Name: "Fumarole", RedirectURIs: flag.Args(),
	}))
	check(kept.CreateConnector(ctx, storage.Connector{
		ID: "mock", Type: "mockCallback", Name: "Mock", ResourceVersion: "1",
	}))
	dex, err := server.NewServer(ctx, server.Config{
		Issuer:                *issuer,
		Storage:               kept,
		SkipApprovalScreen:    true,
		AlwaysShowLoginScreen: *screen,
		Web:                   server.WebConfig{WebFS: web.FS()},
		Logger:                logger,
	})
	check(err)
	check(http.ListenAndServe(*listen, dex))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
