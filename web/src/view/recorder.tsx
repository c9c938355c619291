import type { Talk } from '../talk/talk'
export function Recorder({ done }: { talk: Talk; done: () => void }) {
  return <button type="button" onClick={done}>…</button>
}
