// Prints the addresses that c-ares, as Node has it, finds for a name, one a
// line, or the error.
const { resolve4, resolve6 } = require("node:dns").promises;

const name = process.argv[2];
const words = { ENOTFOUND: "none", ENODATA: "none", ESERVFAIL: "again", ETIMEOUT: "again", EREFUSED: "again" };

if (name === "-version") {
  console.log(process.versions.ares);
  process.exit();
}
Promise.allSettled([resolve4(name), resolve6(name)]).then((both) => {
  const found = both.flatMap((one) => one.value ?? []);
  const codes = both.map((one) => one.reason?.code).filter((code) => code);
  console.log(found.length > 0 ? found.join("\n") : words[codes[0]] ?? codes[0]);
});
