export default () => {
  console.log("for the operator alone");
  return "done";
};
