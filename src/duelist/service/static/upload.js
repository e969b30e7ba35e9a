// Files of prompts with answers, in parts that the service takes at once.

const PART = 1_000_000; // characters

// JSON Lines are sent in parts; of CSV the columns belong together, so it goes as one.
export async function partsOfFile(file) {
  const text = await file.text();
  if (file.name.toLowerCase().endsWith(".csv")) return [{ text, file: "csv" }];
  const parts = [""];
  for (const line of text.split("\n")) {
    if (parts.at(-1) && parts.at(-1).length + line.length > PART) parts.push("");
    parts[parts.length - 1] += `${line}\n`;
  }
  const full = parts.filter((part) => part.trim());
  return (full.length ? full : [text]).map((part) => ({ text: part, file: "jsonl" }));
}
