import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// `quipu serve` prints its address; `QUIPU_URL=http://127.0.0.1:4777 npm run dev` uses it as backend.
const backend = process.env.QUIPU_URL ?? "http://127.0.0.1:4777";

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: "es2022",
    // The content security policy forbids `data:` fonts and inline scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
  },
  server: { proxy: { "/api": { target: backend, changeOrigin: true, headers: { origin: backend } } } },
});
